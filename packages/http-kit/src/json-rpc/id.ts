const INTEGER = /^-?(?:0|[1-9][0-9]*)$/

/**
 * Returns `true` if the source text of a JSON value is a request id: a string, or an integer of any size. An integer
 * written with a fraction or an exponent is not one, because two readers may print it differently.
 */
export function isIdText(text: string): boolean {
  return text.startsWith('"') || INTEGER.test(text)
}

/** Returns one text for all spellings of the same id, for use as a key. */
export function idKey(idText: string): string {
  return idText.includes('\\') ? JSON.stringify(JSON.parse(idText)) : idText
}
