import type { JsonObject } from '@signalbox/http-kit'
import { isJsonObject, parseJson } from '@signalbox/http-kit/internal'
import type { OutboundConnections } from '@signalbox/http-kit/internal'
import { fetchDocument } from '@signalbox/http-kit/internal'

import { AgentAddressError, agentUrl } from '../agent-addresses.ts'
import { AgentCardSchema, isAgentId } from '../card/agent-card.ts'
import { BINDINGS, callUrl, isPull } from '../card/agent-options.ts'
import { cardProblems, shown } from '../card/card-problems.ts'
import type { AddressCheck } from '../card/validate-card.ts'
import { invalidCard, MAX_CARD_BYTES } from '../card/validate-card.ts'

/** The time for an agent to send its card, in ms. */
const FETCH_MS = 10_000

/** Members of a registration that an agent cannot set by the card that it serves. */
const OWNERS_OWN = ['a2a', 'agent_card_url', 'agent_id', 'instance_id', 'instances'] as const

/** A registration by the URL of a card. */
interface CardSource {
  readonly url: URL
  /** The id that the owner chose; absent: the card's `agent_id`, or one made from its name. */
  readonly agentId?: string | undefined
  /** The options of the registration. */
  readonly options: JsonObject
}

/** The reason why a card could not be read, for the owner and operators. */
export class CardFetchError extends Error {
  override readonly name = 'CardFetchError'
}

/** The card as the agent serves it, or `unchanged` for the ETag. */
type ServedCard = { readonly card: JsonObject; readonly etag: string | undefined } | 'unchanged'

interface FetchContext {
  readonly connections: OutboundConnections
  /** The account that lookups of the host count against. */
  readonly account: string
  readonly signal?: AbortSignal
}

/**
 * Reads the card that an agent serves.
 * @param etag The ETag of the card that is known already
 * @throws CardFetchError
 */
export async function fetchCard(url: URL, context: FetchContext, etag?: string): Promise<ServedCard> {
  const answer = await fetchDocument(url, {
    ...context,
    accept: 'application/json',
    headers: { 'A2A-Version': '1.0', ...(etag === undefined ? {} : { 'If-None-Match': etag }) },
    // Formatting needs space.
    maxBytes: 2 * MAX_CARD_BYTES,
    timeoutMs: FETCH_MS,
  }).catch((cause: unknown) => {
    throw new CardFetchError(reasonOf(cause), { cause })
  })
  const { status, headers, text } = answer
  if (status === 304 && etag !== undefined) return 'unchanged'
  if (status !== 200) throw new CardFetchError(`the agent answered with HTTP ${status}`)
  const parsed = parseJson(text)
  if (!('value' in parsed) || !isJsonObject(parsed.value)) throw new CardFetchError('the answer is not an agent card')
  const tag = headers['etag']
  return { card: parsed.value, etag: typeof tag === 'string' && tag.length <= 256 ? tag : undefined }
}

/** Returns the registration for a card that an agent serves. @throws CardFetchError for a card without an address or id */
export function registrationOf(served: JsonObject, { url, agentId, options }: CardSource): JsonObject {
  const own = Object.fromEntries(Object.entries(served).filter(([name]) => !OWNERS_OWN.some((one) => one === name)))
  const id = agentId ?? idOf(served)
  const address = callUrl(served)
  if (address === undefined) throw new CardFetchError(`the card has no interface over ${BINDINGS}`)
  return { ...own, agent_id: id, url: address, agent_card_url: url.href, a2a: { liveness: 'probe', ...options } }
}

/** Returns true for a registration by the URL of a card alone. */
export function isByCardUrl(card: unknown): card is JsonObject {
  return isJsonObject(card) && card['agent_card_url'] !== undefined && card['url'] === undefined && !isPull(card)
}

/**
 * Reads the source of a registration by the URL of a card.
 * @throws RegistryError CARD_INVALID
 */
export async function cardSource(card: JsonObject, check: AddressCheck): Promise<CardSource> {
  const { agent_card_url: text, agent_id: agentId, a2a: options = {} } = card
  const url = typeof text === 'string' ? agentUrl(text) : undefined
  const field = 'agent_card_url'
  if (url === undefined || String(text).length > 2_048) {
    throw invalidCard([
      { field, given: shown(text), allowed: 'an absolute http:// or https:// URL without credentials' },
    ])
  }
  const other = Object.keys(card).find((name) => ![field, 'agent_id', 'a2a'].includes(name))
  if (other !== undefined) {
    throw invalidCard([
      { field: other, given: 'given', allowed: 'absent with agent_card_url and without url: the served card has it' },
    ])
  }
  if (!isJsonObject(options)) throw invalidCard([{ field: 'a2a', given: shown(options), allowed: 'an object' }])
  if (agentId !== undefined && (typeof agentId !== 'string' || !isAgentId(agentId))) {
    throw invalidCard(cardProblems(AgentCardSchema, card).filter((problem) => problem.field === 'agent_id'))
  }
  const allowed = await check(url)
  if (allowed !== undefined) throw invalidCard([{ field, given: shown(text), allowed }])
  return { url, options, agentId }
}

/** Returns the card's `agent_id`, or an id made from its name. @throws CardFetchError */
function idOf({ agent_id: given, name }: JsonObject): string {
  if (typeof given === 'string' && isAgentId(given)) return given
  const words = (typeof name === 'string' ? name : '').toLowerCase().match(/[a-z0-9]+/g) ?? []
  const id = words.join('-').slice(0, 128).replace(/-$/, '')
  if (isAgentId(id)) return id
  throw new CardFetchError('no agent_id can be made from the name in the card; send agent_id')
}

/** The texts contain no addresses of a name (R8). */
function reasonOf(error: unknown): string {
  if (error instanceof AgentAddressError) return error.message
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined
  if (code === undefined && error instanceof Error) return error.message
  return typeof code === 'string' ? `no connection to the agent (${code})` : 'no connection to the agent'
}
