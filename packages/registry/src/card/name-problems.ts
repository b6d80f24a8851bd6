import { codePoint, controlCharacterIn } from '@signalbox/broker-core/internal'
import { isJsonObject } from '@signalbox/http-kit'

import type { CardProblem } from './card-problems.ts'
import { shown } from './card-problems.ts'

/** Names of common control and direction characters. */
const KNOWN: ReadonlyMap<string, string> = new Map([
  ['\u0000', 'NUL'],
  ['\u0007', 'BEL'],
  ['\u0008', 'BACKSPACE'],
  ['\t', 'TAB'],
  ['\n', 'LINE FEED'],
  ['\r', 'CARRIAGE RETURN'],
  ['\u001b', 'ESCAPE'],
  ['\u007f', 'DELETE'],
  ['\u009b', 'CONTROL SEQUENCE INTRODUCER'],
  ['\u061c', 'ARABIC LETTER MARK'],
  ['\u200e', 'LEFT-TO-RIGHT MARK'],
  ['\u200f', 'RIGHT-TO-LEFT MARK'],
  ['\u2028', 'LINE SEPARATOR'],
  ['\u2029', 'PARAGRAPH SEPARATOR'],
  ['\u202a', 'LEFT-TO-RIGHT EMBEDDING'],
  ['\u202b', 'RIGHT-TO-LEFT EMBEDDING'],
  ['\u202c', 'POP DIRECTIONAL FORMATTING'],
  ['\u202d', 'LEFT-TO-RIGHT OVERRIDE'],
  ['\u202e', 'RIGHT-TO-LEFT OVERRIDE'],
  ['\u2066', 'LEFT-TO-RIGHT ISOLATE'],
  ['\u2067', 'RIGHT-TO-LEFT ISOLATE'],
  ['\u2068', 'FIRST STRONG ISOLATE'],
  ['\u2069', 'POP DIRECTIONAL ISOLATE'],
])

/**
 * Returns the problems of the names that lists show: the agent's, and those of its skills. The schema does
 * not check them, so that cards that were registered earlier stay readable.
 */
export function nameProblems(card: unknown): readonly CardProblem[] {
  if (!isJsonObject(card)) return []
  const problems = [problemOf('name', card['name'])]
  const skills: unknown = card['skills']
  if (Array.isArray(skills)) {
    for (const [index, skill] of skills.entries()) {
      if (!isJsonObject(skill)) continue
      problems.push(problemOf(`skills[${index}].id`, skill['id']), problemOf(`skills[${index}].name`, skill['name']))
    }
  }
  return problems.filter((problem) => problem !== undefined)
}

function problemOf(field: string, value: unknown): CardProblem | undefined {
  const character = typeof value === 'string' ? controlCharacterIn(value) : undefined
  if (character === undefined) return undefined
  const code = codePoint(character)
  const known = KNOWN.get(character)
  const which = known === undefined ? code : `${code} ${known}`
  return { field, given: shown(value), allowed: `text without control and direction characters (it holds ${which})` }
}
