import { Buffer } from 'node:buffer'
import { setImmediate as otherWork } from 'node:timers/promises'

import type { AgentRegistry } from '../agent-registry.ts'
import type { ListQuery } from './list-query.ts'

/** The maximum size of a page, in bytes. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024

/** The number of agents that are processed before other requests run. */
const AT_ONCE = 50

/** A page of the list of agents. */
interface ListPage {
  /** A JSON array of cards. */
  readonly text: string
  /** The last agent_id of the page if more agents follow; otherwise undefined. */
  readonly next: string | undefined
}

/**
 * Serializes the cards that the caller may see, up to the requested number and the maximum size of a page.
 */
export async function listPage(
  registry: AgentRegistry,
  { skillTags, limit, after }: ListQuery,
  visible: (agentId: string) => boolean,
): Promise<ListPage> {
  const texts: string[] = []
  // The brackets: two bytes, minus the comma that the last card does not have.
  let bytes = 1
  let last = after
  let seen = after
  for (;;) {
    const cards = registry.list({ skillTags, limit: AT_ONCE, after: seen })
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

/** Returns the value of the header `Link` for the next page (RFC 8288). */
export function nextLink(query: string, next: string): string {
  const parameters = new URLSearchParams(query)
  parameters.set('cursor', next)
  return `</agents?${parameters.toString()}>; rel="next"`
}
