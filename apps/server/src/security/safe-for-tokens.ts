const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Returns true for a URL to which tokens may be sent: https, or http on this machine, without credentials. */
export function isSafeForTokens(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || url.username !== '' || url.password !== '') return false
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.has(url.hostname))
}
