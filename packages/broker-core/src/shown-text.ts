/**
 * Control characters, and those that change the direction of text: with U+202E a name is shown as another one. The joiners
 * U+200C and U+200D are not among them, as words and emoji are spelt with them.
 */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Returns the first character of a text that a terminal or a page obeys instead of showing it. */
export function controlCharacterIn(text: string): string | undefined {
  return text.match(CONTROL)?.[0]
}

/** Returns the code point of a character of the Basic Multilingual Plane, such as `U+202E`. */
export function codePoint(character: string): string {
  return `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
}

/** Replaces each control character by its code point. */
export function withoutControls(text: string): string {
  return text.replace(CONTROL, codePoint)
}

/**
 * Quotes a text of somebody else for an error or a log: cut, on one line, control characters as code points.
 * @param most The most characters of it
 */
export function shownText(text: string, most = 64): string {
  return JSON.stringify(withoutControls(text.length > most ? `${text.slice(0, most)}…` : text))
}
