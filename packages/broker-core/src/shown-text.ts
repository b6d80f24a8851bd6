/**
 * Control characters, and characters that change the text direction: U+202E displays a name as a different one. U+200C
 * and U+200D (joiners) are allowed, because words and emoji need them.
 */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Returns the first control character in a text: a terminal or a page would obey it instead of showing it. */
export function controlCharacterIn(text: string): string | undefined {
  return text.match(CONTROL)?.[0]
}

/** Returns the code point of a character of the Basic Multilingual Plane, such as `U+202E`. */
export function codePoint(character: string): string {
  return `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
}

/** Replaces each control character with its code point. */
export function withoutControls(text: string): string {
  return text.replace(CONTROL, codePoint)
}

/**
 * Quotes a caller's text for an error or a log: shortened, on one line, with control characters as code points.
 * @param most The maximum number of characters of the text
 */
export function shownText(text: string, most = 64): string {
  return JSON.stringify(withoutControls(text.length > most ? `${text.slice(0, most)}…` : text))
}
