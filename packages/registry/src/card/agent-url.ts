/** Absolute, with both slashes: URL would repair `http:example.com`, and remove blanks and line ends. */
const ABSOLUTE = /^https?:\/\/[^\s/?#\\]/i
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const BLANK_OR_CONTROL = /[\u0000-\u0020\u007f]/

/**
 * Parses an agent's url. Returns undefined unless it is an absolute http or https URL without credentials,
 * white space and control characters.
 */
export function agentUrl(text: string): URL | undefined {
  if (!ABSOLUTE.test(text) || BLANK_OR_CONTROL.test(text)) return undefined
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return undefined
  return url
}
