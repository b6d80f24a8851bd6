import type { MessageInput, RequestMessage } from '@signalbox/broker-core'

import type { EventConverter } from '../stream/events.ts'
import type { WireVersion } from '../wire/index.ts'

/** Returns the channel of one agent's requests. */
export function agentChannel(agentId: string): string {
  return `_AGENTS_.agents/${agentId}`
}

/**
 * The channel of the requests whose version of A2A matters, for all agents. Nodes of older versions do not serve it,
 * so they never get a request that they would misunderstand.
 */
export const WIRE_CHANNEL = '_AGENTS_.a2a'

/** The channel of the requests whose answers are kept in the log of runs, for all agents. Older nodes do not serve it. */
export const LOG_CHANNEL = '_AGENTS_.a2a/2'

/** The way in which the serving node handles a request. */
export type AgentQueryMode =
  /** Calls the agent and replies with its response. */
  | 'call'
  /** Replies once the request is accepted; the agent's response is dropped. */
  | 'accept'
  /** Replies when the agent has sent its response headers, then relays its events on the stream's channel. */
  | 'stream'
  /** Continues a run that its node has left. There is no request to the agent. */
  | 'resume'

/** The format in which the caller gets the agent's answer. */
export type AnswerFormat =
  /** In the caller's version of A2A; an event is a JSON-RPC response with the caller's id. */
  | 'native'
  /** As `native`, but an event is the result itself, as the HTTP+JSON binding of A2A 1.0 has it. */
  | 'rest'
  /** A stream in the gateway's own events. */
  | 'events'
  /** As the agent gave it, in the agent's version. */
  | 'agent'

/** The version of A2A that a request is written in. The serving node translates it to the agent's version. */
export interface WireRequest {
  readonly agentId: string
  readonly version: WireVersion
  readonly answer: AnswerFormat
}

/** A request of the HTTP+JSON binding of A2A 1.0. */
export interface RestCall {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** The path below the agent's url, with the query. */
  readonly path: string
}

/** The run of a request whose answer is kept in the log. */
export interface LoggedRequest {
  readonly agentId: string
  readonly run: string
  /** The key with which the request runs once, and the digest of its content. @default it runs each time */
  readonly once?: { readonly key: string; readonly digest: string } | undefined
  /** Returns the converter that writes the agent's events into the log. Not encoded. */
  readonly events?: ((wire: WireVersion) => EventConverter) | undefined
}

/** A request to an agent, as it travels from the node that received it to the node that serves the agent. */
export interface AgentQuery {
  readonly mode: AgentQueryMode
  /** The JSON-RPC request, unchanged. */
  readonly body: Uint8Array
  /** The verified identity of the caller; the agent receives it as `X-Broker-Caller-ID`. */
  readonly callerId: string
  /** `true` for a caller with the role Admin. @default false */
  readonly admin?: boolean | undefined
  /** The account that the reply counts against: `client:{ClientID}` or `address:{network}`. */
  readonly account: string
  /** The id of the request, unique in the cluster; absent in requests of older nodes. */
  readonly requestId?: string | undefined
  /** The time that the agent has to answer, in milliseconds. */
  readonly timeoutMs: number
  /** The id of the stream; present with mode `stream`. */
  readonly streamId?: string | undefined
  /**
   * The number of brokers that the request passed through, including this one; the agent receives it as
   * `X-Broker-Hops`.
   */
  readonly hops: number
  /** The caller's HTTP headers that are forwarded to the agent, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** `true` if the headers name the span of the request, and the call of the agent is recorded in it. @default false */
  readonly traced?: boolean | undefined
  /** Present on {@link WIRE_CHANNEL}. */
  readonly wire?: WireRequest | undefined
  /** The request of the HTTP+JSON binding that the serving node sends in place of a POST to the url. Not encoded. */
  readonly rest?: RestCall | undefined
  /** Present on {@link LOG_CHANNEL}. */
  readonly log?: LoggedRequest | undefined
}

/** The prefix of the tags that carry HTTP headers. */
export const HEADER_TAG = 'a2a_hdr_'
const MODES: ReadonlySet<string> = new Set<AgentQueryMode>(['call', 'accept', 'stream', 'resume'])
const ANSWERS: ReadonlySet<string> = new Set<AnswerFormat>(['native', 'rest', 'events', 'agent'])
const VERSIONS: ReadonlySet<string> = new Set<WireVersion>(['1.0', '0.3'])

/** Encodes a request as the message of a Query: its body is the envelope, all other values are tags. */
export function encodeAgentQuery(query: AgentQuery): MessageInput & { readonly body: Uint8Array } {
  const { mode, body, callerId, admin, account, requestId, timeoutMs, streamId, hops, headers, traced, wire, log } =
    query
  const tags: Record<string, string> = {
    a2a_mode: mode,
    a2a_caller: callerId,
    a2a_account: account,
    a2a_timeout_ms: String(timeoutMs),
    a2a_hops: String(hops),
  }
  if (admin === true) tags['a2a_admin'] = '1'
  if (traced === true) tags['a2a_traced'] = '1'
  if (requestId !== undefined) tags['a2a_request_id'] = requestId
  if (streamId !== undefined) tags['a2a_stream_id'] = streamId
  if (wire !== undefined) {
    tags['a2a_agent'] = wire.agentId
    tags['a2a_wire'] = wire.version
    tags['a2a_answer'] = wire.answer
  }
  if (log !== undefined) {
    tags['a2a_agent'] = log.agentId
    tags['a2a_run'] = log.run
    if (log.once !== undefined) {
      tags['a2a_key'] = log.once.key
      tags['a2a_digest'] = log.once.digest
    }
  }
  for (const name of Object.keys(headers)) tags[HEADER_TAG + name] = headers[name] ?? ''
  return { body, tags }
}

/**
 * Decodes the message of a Query.
 * @throws TypeError for a message that {@link encodeAgentQuery} did not create
 */
export function decodeAgentQuery({ body, tags }: Pick<RequestMessage, 'body' | 'tags'>): AgentQuery {
  const { a2a_mode: mode = '', a2a_caller: callerId, a2a_timeout_ms: timeout, a2a_stream_id: streamId } = tags
  const timeoutMs = Number(timeout)
  // A node of an older version sends no hop count, no account and no id.
  const hops = Number(tags['a2a_hops'] ?? 1)
  if (!isMode(mode) || callerId === undefined || !(timeoutMs > 0) || !(Number.isInteger(hops) && hops >= 1)) {
    throw new TypeError('not a request to an agent')
  }
  const headers: Record<string, string> = {}
  for (const tag of Object.keys(tags)) {
    if (tag.startsWith(HEADER_TAG)) headers[tag.slice(HEADER_TAG.length)] = tags[tag] ?? ''
  }
  const { a2a_account: account = `client:${callerId}`, a2a_request_id: requestId } = tags
  const admin = tags['a2a_admin'] === '1'
  const traced = tags['a2a_traced'] === '1' || undefined
  const wire = decodeWire(tags)
  const log = decodeLog(tags)
  return { mode, body, callerId, admin, account, requestId, timeoutMs, streamId, hops, headers, traced, wire, log }
}

function decodeLog(tags: RequestMessage['tags']): LoggedRequest | undefined {
  const { a2a_agent: agentId, a2a_run: run, a2a_key: key, a2a_digest: digest } = tags
  if (agentId === undefined || run === undefined) return undefined
  return { agentId, run, once: key === undefined || digest === undefined ? undefined : { key, digest } }
}

/** @throws TypeError for an unknown version or form */
function decodeWire(tags: RequestMessage['tags']): WireRequest | undefined {
  const { a2a_agent: agentId, a2a_wire: version = '', a2a_answer: answer = '' } = tags
  if (agentId === undefined || tags['a2a_wire'] === undefined) return undefined
  if (!isVersion(version) || !isAnswer(answer)) throw new TypeError('not a request in a known version of A2A')
  return { agentId, version, answer }
}

function isMode(mode: string): mode is AgentQueryMode {
  return MODES.has(mode)
}

function isVersion(version: string): version is WireVersion {
  return VERSIONS.has(version)
}

function isAnswer(answer: string): answer is AnswerFormat {
  return ANSWERS.has(answer)
}
