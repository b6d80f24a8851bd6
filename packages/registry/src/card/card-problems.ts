import { codePoint, controlCharacterIn, shownText } from '@signalbox/broker-core/internal'
import type { JsonObject } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'
import type { TSchema } from 'typebox'
import { Type } from 'typebox'
import { Check } from 'typebox/schema'

import { agentUrl } from '../agent-addresses.ts'

/** One problem of a card; `details` of the error lists all of them. */
export interface CardProblem {
  /** The path of the field, such as `name` or `skills[1].id`; `card` for the card itself. */
  readonly field: string
  /** The given value, shortened; absent when the field is missing. */
  readonly given?: string | undefined
  readonly allowed: string
}

/** The maximum number of characters of a value in a problem. */
const MAX_SHOWN = 64
/** The maximum number of problems in an error: a card of 64 KiB can have many thousands. */
export const MAX_PROBLEMS = 100

/**
 * Returns the problems of a value by its schema, at most {@link MAX_PROBLEMS}. The schema's descriptions say
 * the allowed values.
 */
export function cardProblems(schema: TSchema, value: unknown): readonly CardProblem[] {
  const problems: CardProblem[] = []
  collect(schema, value, '', problems)
  return problems.slice(0, MAX_PROBLEMS)
}

/** Returns a short text by which a reader recognizes the value. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return `an array of ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  if (typeof value !== 'string') return String(value)
  return value.length > MAX_SHOWN ? `${shownText(value.slice(0, MAX_SHOWN))}… (${value.length})` : shownText(value)
}

function collect(schema: TSchema, value: unknown, field: string, problems: CardProblem[]): void {
  // A plain boolean: as a type guard it would narrow the type below to never.
  const valid: boolean = Check(schema, value)
  if (valid || problems.length >= MAX_PROBLEMS) return
  if (Type.IsObject(schema) && isJsonObject(value)) {
    // TypeBox omits the keyword when no field is required, although the type declares it.
    const required: readonly string[] = schema.required ?? []
    for (const [name, part] of Object.entries(schema.properties)) {
      const inner = field === '' ? name : `${field}.${name}`
      if (Object.hasOwn(value, name) && value[name] !== undefined) collect(part, value[name], inner, problems)
      else if (required.includes(name)) problems.push({ field: inner, allowed: descriptionOf(part) })
    }
  } else if (Type.IsArray(schema) && Array.isArray(value)) {
    for (const [index, item] of value.entries()) collect(schema.items, item, `${field}[${index}]`, problems)
  } else {
    problems.push({ field: field === '' ? 'card' : field, given: shown(value), allowed: descriptionOf(schema) })
  }
}

/** Returns the schema's description of the allowed values. */
export function descriptionOf(schema: TSchema): string {
  const description: unknown = Reflect.get(schema, 'description')
  return typeof description === 'string' ? description : 'a valid value'
}

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

/** Members of a card that pages show as links, in both spellings that SDKs read. */
const LINKS: ReadonlySet<string> = new Set(['documentationUrl', 'documentation_url', 'iconUrl', 'icon_url'])

/** Members with URLs for other programs, which may have any scheme, such as `grpc:`. */
const ADDRESSES: ReadonlySet<string> = new Set([
  'supportedInterfaces',
  'supported_interfaces',
  'additionalInterfaces',
  'additional_interfaces',
  'securitySchemes',
  'security_schemes',
])

/** The schemes of URLs that carry a program or a page: a browser runs it with the rights of the page that links it. */
const ACTIVE: ReadonlySet<string> = new Set(['javascript:', 'vbscript:', 'data:', 'blob:'])

/** Returns a card without the links that a page must not show. Cards that were not registered by this version may have any. */
export function withoutUnsafeLinks(card: JsonObject): JsonObject {
  const unsafe = new Set(linkProblems(card).map(({ field }) => (field === 'provider.url' ? 'provider' : field)))
  return Object.fromEntries(Object.entries(card).filter(([name]) => !unsafe.has(name)))
}

/** Returns true for the URL of a link that a page may show; an empty text is no link. */
function isSafeLink(value: unknown): boolean {
  return typeof value !== 'string' || value === '' || agentUrl(value) !== undefined
}

/** Returns the links of a card that a page must not show, and the URLs that no program should open. */
export function linkProblems(card: unknown): readonly CardProblem[] {
  if (!isJsonObject(card)) return []
  const problems: CardProblem[] = []
  for (const [name, value] of Object.entries(card)) {
    if (LINKS.has(name)) addLink(name, value, problems)
    else if (name === 'provider' && isJsonObject(value)) addLink('provider.url', value['url'], problems)
    else if (ADDRESSES.has(name)) addActive(name, value, problems)
  }
  return problems
}

function addLink(field: string, value: unknown, problems: CardProblem[]): void {
  if (isSafeLink(value)) return
  problems.push({ field, given: shown(value), allowed: 'an absolute http:// or https:// URL without credentials' })
}

/** Adds the members below a value that are named as URLs and have an active scheme. */
function addActive(field: string, value: unknown, problems: CardProblem[]): void {
  if (typeof value === 'string') {
    // URL skips the blanks and line ends that browsers skip.
    if (/url$/i.test(field) && ACTIVE.has(URL.parse(value)?.protocol ?? '')) {
      problems.push({ field, given: shown(value), allowed: `a URL of another scheme than ${[...ACTIVE].join(', ')}` })
    }
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) addActive(`${field}[${index}]`, item, problems)
  } else if (isJsonObject(value)) {
    for (const [name, member] of Object.entries(value)) addActive(`${field}.${name}`, member, problems)
  }
}
