import { Buffer } from 'node:buffer'

import type { Steps } from '@signalbox/http-kit'
import { compileQuery, parameterProblemsText, TextParts } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import type { AgentRegistry } from '../agent-registry.ts'
import { AGENT_ID_PATTERN } from '../card/agent-card.ts'
import { RegistryError } from '../errors.ts'

const AGENT_ID = new RegExp(AGENT_ID_PATTERN)

/** The query of `GET /agents`. */
export const ListQuerySchema = Type.Object({
  skill_tags: Type.Optional(
    Type.String({ description: 'Comma-separated tags. Lists agents with a skill that has at least one of them.' }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'The maximum number of cards.' }),
  ),
  cursor: Type.Optional(
    Type.Refine(
      Type.String({ description: 'The last agent_id of the previous page. The page begins after it.' }),
      (cursor) => AGENT_ID.test(cursor),
      () => 'the last agent_id of the previous page',
    ),
  ),
})

const read = compileQuery(ListQuerySchema, (problems) => {
  const message = `invalid query parameters: ${parameterProblemsText(problems)}`
  return new RegistryError('PARAMETER_INVALID', message, problems)
})

export interface ListQuery {
  readonly skillTags: readonly string[]
  readonly limit: number
  /** The last agent_id of the previous page; undefined for the first page. */
  readonly after: string | undefined
}

/**
 * Parses the query of `GET /agents`. Rejects unknown and repeated parameters; ignores empty tags.
 * @throws RegistryError PARAMETER_INVALID with all problems
 */
export function readListQuery(query: string): ListQuery {
  const { skill_tags: tags = '', limit, cursor } = read(query)
  const skillTags = tags
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
  return { skillTags, limit: limit ?? Number.MAX_SAFE_INTEGER, after: cursor }
}

/** The maximum size of a page, in bytes. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024

/** Agents that are read, and bytes that are serialized, before other requests run. */
const AT_ONCE = 50
const BYTES_AT_ONCE = 256 * 1024

/** A page of the list of agents. */
interface ListPage {
  /** A JSON array of cards. */
  readonly text: string | TextParts
  /** The last agent_id of the page if more agents follow; otherwise undefined. */
  readonly next: string | undefined
}

/**
 * Serializes the cards that the caller may see, up to the requested number and the maximum size of a page, a piece of work
 * at a time.
 */
export function* listPage(
  registry: AgentRegistry,
  { skillTags, limit, after }: ListQuery,
  visible: (agentId: string) => boolean,
): Steps<ListPage> {
  const text = new TextParts().add('[')
  let listed = 0
  // The brackets: two bytes, minus the comma that the last card does not have.
  let bytes = 1
  let pauseAt = BYTES_AT_ONCE
  let last = after
  let seen = after
  for (;;) {
    const cards = registry.list({ skillTags, limit: AT_ONCE, after: seen })
    for (const card of cards) {
      seen = card.agent_id
      if (!visible(seen)) continue
      if (listed >= limit) return page(text, last)
      const one = JSON.stringify(card)
      bytes += Buffer.byteLength(one) + 1
      if (bytes > MAX_PAGE_BYTES) return page(text, last)
      text.add(listed++ === 0 ? one : `,${one}`)
      last = seen
      if (bytes < pauseAt) continue
      pauseAt = bytes + BYTES_AT_ONCE
      yield
    }
    if (cards.length < AT_ONCE) return page(text, undefined)
    yield
  }
}

function page(text: TextParts, next: string | undefined): ListPage {
  return { text: text.add(']').shortest, next }
}

/** Returns the value of the header `Link` for the next page (RFC 8288). */
export function nextLink(query: string, next: string): string {
  const parameters = new URLSearchParams(query)
  parameters.set('cursor', next)
  return `</agents?${parameters.toString()}>; rel="next"`
}
