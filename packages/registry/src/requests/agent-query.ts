import type { MessageInput, RequestMessage } from '@signalbox/broker-core'

/** Where the requests to agents go (specification, "Events", internal channels). */
const CHANNEL_PREFIX = '_AGENTS_.agents/'

/** The channel of one agent's requests. */
export function agentChannel(agentId: string): string {
  return CHANNEL_PREFIX + agentId
}

/** What the serving node does with a request. */
export type AgentQueryMode =
  /** Calls the agent and replies with its response. */
  | 'call'
  /** Replies once the request is accepted; the agent's response is dropped (M12, A6). */
  | 'accept'
  /** Replies once the agent has answered with headers, then relays its events on the stream's channel (A10). */
  | 'stream'

/** A request to an agent, as it travels from the node that took it to the node that serves the agent. */
export interface AgentQuery {
  readonly mode: AgentQueryMode
  /** The JSON-RPC request, byte for byte. */
  readonly body: Uint8Array
  /** The verified identity of the caller; the agent learns it as `X-Broker-Caller-ID`. */
  readonly callerId: string
  /** The agent's time to answer, in milliseconds (A2). */
  readonly timeoutMs: number
  /** With mode `stream`: the id of the stream. */
  readonly streamId?: string
  /** Brokers that the request has come through, this one included; the agent learns it as `X-Broker-Hops`. */
  readonly hops: number
  /** The caller's HTTP headers that the agent gets, by lower-case name (A5). */
  readonly headers: Readonly<Record<string, string>>
}

const HEADER_TAG = 'a2a_hdr_'
const MODES: ReadonlySet<string> = new Set<AgentQueryMode>(['call', 'accept', 'stream'])

/** The Query's message: the envelope as its body, all the rest in tags. */
export function encodeAgentQuery(query: AgentQuery): MessageInput {
  const { mode, body, callerId, timeoutMs, streamId, hops, headers } = query
  const tags: Record<string, string> = {
    a2a_mode: mode,
    a2a_caller: callerId,
    a2a_timeout_ms: String(timeoutMs),
    a2a_hops: String(hops),
  }
  if (streamId !== undefined) tags['a2a_stream_id'] = streamId
  for (const name of Object.keys(headers)) tags[HEADER_TAG + name] = headers[name] ?? ''
  return { body, tags }
}

/** @throws TypeError for a message that {@link encodeAgentQuery} did not make */
export function decodeAgentQuery({ body, tags }: Pick<RequestMessage, 'body' | 'tags'>): AgentQuery {
  const { a2a_mode: mode = '', a2a_caller: callerId, a2a_timeout_ms: timeout, a2a_stream_id: streamId } = tags
  const timeoutMs = Number(timeout)
  // A node of an older version sends none.
  const hops = Number(tags['a2a_hops'] ?? 1)
  if (!isMode(mode) || callerId === undefined || !(timeoutMs > 0) || !(Number.isInteger(hops) && hops >= 1)) {
    throw new TypeError('not a request to an agent')
  }
  const headers: Record<string, string> = {}
  for (const tag of Object.keys(tags)) {
    if (tag.startsWith(HEADER_TAG)) headers[tag.slice(HEADER_TAG.length)] = tags[tag] ?? ''
  }
  return { mode, body, callerId, timeoutMs, hops, headers, ...(streamId === undefined ? {} : { streamId }) }
}

function isMode(mode: string): mode is AgentQueryMode {
  return MODES.has(mode)
}
