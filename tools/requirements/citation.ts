const ID = String.raw`[A-Z]{1,6}-?\d{1,3}`
const IDS = String.raw`${ID}(?:, ${ID})*`
const AT_START = new RegExp(`^(${IDS}) - `)
const IN_SOURCE = new RegExp(`['"\`](${IDS}) - `, 'g')

/** Returns the ids that a test's name cites: `M7, TOOL-1 - …` cites M7 and TOOL-1. */
export function citedByName(name: string): readonly string[] {
  return AT_START.exec(name)?.[1]?.split(', ') ?? []
}

/** Returns the ids that the names in a test file's source cite. */
export function citedInSource(text: string): readonly string[] {
  return [...text.matchAll(IN_SOURCE)].flatMap(([, ids = '']) => ids.split(', '))
}
