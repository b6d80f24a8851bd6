import { isJsonObject } from '@signalbox/http-kit'
import type { JsonObject } from '@signalbox/http-kit'

import { agentUrl } from './agent-url.ts'
import type { CardProblem } from './card-problems.ts'
import { shown } from './card-problems.ts'

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
