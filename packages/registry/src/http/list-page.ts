import { Buffer } from 'node:buffer'
import { setImmediate as otherWork } from 'node:timers/promises'

import type { AgentRegistry } from '../agent-registry.ts'
import type { ListQuery } from './list-query.ts'

/** The most bytes of one page. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024

/** Agents that are looked at before other requests have their turn. */
const AT_ONCE = 50

/** A part of the list of agents. */
export interface ListPage {
  /** A JSON array of cards. */
  readonly text: string
  /** The agent_id that it ends with, where there are more after it. */
  readonly next: string | undefined
}

/** Prints the cards that a caller may see, as many as are asked for and as a page holds; the rest is not printed. */
export async function listPage(
  registry: AgentRegistry,
  { skillTags, limit, after }: ListQuery,
  visible: (agentId: string) => boolean,
): Promise<ListPage> {
  const texts: string[] = []
  // The brackets; each card brings a comma.
  let bytes = 1
  let last = after
  let seen = after
  for (;;) {
    const cards = registry.list({ skillTags, limit: AT_ONCE, ...(seen === undefined ? {} : { after: seen }) })
    for (const card of cards) {
      seen = card.agent_id
      if (!visible(seen)) continue
      if (texts.length >= limit) return page(texts, last)
      const text = JSON.stringify(card)
      bytes += Buffer.byteLength(text) + 1
      if (bytes > MAX_PAGE_BYTES) return page(texts, last)
      texts.push(text)
      last = seen
    }
    if (cards.length < AT_ONCE) return page(texts, undefined)
    await otherWork()
  }
}

function page(texts: readonly string[], next: string | undefined): ListPage {
  return { text: `[${texts.join(',')}]`, next }
}

/** The value of the header `Link` that leads to the next page (RFC 8288). */
export function nextLink(query: string, next: string): string {
  const parameters = new URLSearchParams(query)
  parameters.set('cursor', next)
  return `</agents?${parameters.toString()}>; rel="next"`
}
