const INTEGER = /^-?(?:0|[1-9][0-9]*)$/

/**
 * Whether the source text of a JSON value is an id (J1): a string, or an integer of any size. An integer written with a
 * fraction or an exponent is refused: two readers may print it differently.
 */
export function isIdText(text: string): boolean {
  return text.startsWith('"') || INTEGER.test(text)
}

/** One text for all ways to write the same id, for use as a key. */
export function idKey(idText: string): string {
  return idText.includes('\\') ? JSON.stringify(JSON.parse(idText)) : idText
}
