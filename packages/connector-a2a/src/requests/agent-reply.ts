import type { Reply, ReplyInput } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import type { AgentReply as AgentDirectoryReply } from '@signalbox/broker-core/ports'

import { HEADER_TAG } from './agent-query.ts'

/** The reason for a missing or unusable response of the agent. */
export type AgentFailure =
  /** The deadline passed. */
  | 'timeout'
  /** Connection refused, DNS failure, or reset before a response. */
  | 'unreachable'
  /** HTTP 502, 503 or 504. */
  | 'unavailable'
  /** The response is larger than AgentMaxResponseBytes. */
  | 'too_large'
  /** AgentMaxConcurrency is reached. */
  | 'busy'
  /** The agent is no longer registered on the serving node. */
  | 'not_found'
  /**
   * The response is not valid for the request: a redirect, or an event stream as the answer to a plain call.
   */
  | 'invalid_response'
  /** The request may have run, and its outcome is lost. It is not sent again. */
  | 'unknown'
  /** Another request has the same idempotency key. */
  | 'key_reused'
  /** The inbox of the agent is full. */
  | 'inbox_full'
  /** The serving node could not write what must be durable first: its store is full, or not available. */
  | 'no_store'

/** The kind of a reply with `follow` of an agent whose requests are parked. */
export type ParkedReply =
  /** A call waits for the answer. */
  | 'wait'
  /** No lessee was heard: a call is answered with the task as it is. */
  | 'at_once'
  /** A subscription begins with the task as it is. */
  | 'snapshot'

/** The outcome of a request to an agent, as the gateway needs it. */
export interface AgentReply extends AgentDirectoryReply {
  /** Set when there is no usable response; also on some executed requests (`invalid_response`). */
  readonly failure?: AgentFailure | undefined
  /**
   * `true` if the agent answered a request for a stream with one plain response, which is `body`. Absent from replies
   * to requests without a version of A2A: their plain responses are relayed as streams.
   */
  readonly whole?: boolean | undefined
  /**
   * The event in the log of runs after which the caller's answer begins: that of an earlier request with the same key, or
   * of a request that is parked. The reply has nothing else.
   */
  readonly follow?: string | undefined
  readonly parked?: ParkedReply | undefined
  /** `true` with `follow` if an earlier request has the key of this one. */
  readonly repeated?: boolean | undefined
  /** The headers of the agent's response that the caller gets, by lower-case name. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

const FAILURES: ReadonlySet<string> = new Set<AgentFailure>([
  'timeout',
  'unreachable',
  'unavailable',
  'too_large',
  'busy',
  'not_found',
  'invalid_response',
  'unknown',
  'key_reused',
  'inbox_full',
  'no_store',
])

const NO_BODY = new Uint8Array(0)

/** A reply without a body: the request was accepted, or `follow` says where its answer is. */
export const NO_ANSWER: AgentReply = { executed: true, error: '', status: 200, body: NO_BODY }

/** Returns the reply of the gateway itself with a JSON-RPC response; the caller gets its own id. */
export function wholeReply(content: { readonly result: unknown } | { readonly error: unknown }): AgentReply {
  const body = encodeText(JSON.stringify({ jsonrpc: '2.0', id: null, ...content }))
  return { ...NO_ANSWER, body, whole: true }
}

/**
 * Returns the reply for a request that a limit of this node has refused. The agent may have processed it, unless
 * `unsent` is set.
 */
export function refusedReply({ message }: { readonly message: string }): AgentReply {
  return { executed: false, error: `server busy: ${message}`, failure: 'busy', status: 0, body: NO_BODY }
}

/** Encodes a reply as the reply of the Query. */
export function encodeAgentReply(reply: AgentReply): ReplyInput & { readonly body?: Uint8Array } {
  const { error, failure, status, body, whole, unsent, follow, parked, repeated, headers } = reply
  const tags: Record<string, string> = { a2a_status: String(status) }
  if (failure !== undefined) tags['a2a_failure'] = failure
  if (whole === true) tags['a2a_whole'] = '1'
  if (unsent === true) tags['a2a_unsent'] = '1'
  if (follow !== undefined) tags['a2a_follow'] = follow
  if (parked !== undefined) tags['a2a_parked'] = parked
  if (repeated === true) tags['a2a_repeated'] = '1'
  if (headers !== undefined) {
    for (const name of Object.keys(headers)) tags[HEADER_TAG + name] = headers[name] ?? ''
  }
  return { error, body, tags }
}

export function decodeAgentReply({ executed, error, body, tags }: Reply): AgentReply {
  const {
    a2a_status: status = '0',
    a2a_failure: failure = '',
    a2a_whole: whole,
    a2a_unsent: unsent,
    a2a_follow: follow,
    a2a_parked: parked = '',
    a2a_repeated: repeated,
  } = tags
  return {
    executed,
    error,
    status: Number(status),
    body,
    failure: isFailure(failure) ? failure : undefined,
    whole: whole === '1',
    unsent: unsent === '1',
    follow,
    parked: isParked(parked) ? parked : undefined,
    repeated: repeated === '1' ? true : undefined,
    headers: headersOf(tags),
  }
}

/** Returns the headers among the tags; undefined if there are none. */
function headersOf(tags: Reply['tags']): Record<string, string> | undefined {
  let headers: Record<string, string> | undefined
  for (const tag in tags) {
    if (tag.startsWith(HEADER_TAG)) (headers ??= {})[tag.slice(HEADER_TAG.length)] = tags[tag] ?? ''
  }
  return headers
}

const PARKED: ReadonlySet<string> = new Set<ParkedReply>(['wait', 'at_once', 'snapshot'])

function isParked(parked: string): parked is ParkedReply {
  return PARKED.has(parked)
}

function isFailure(failure: string): failure is AgentFailure {
  return FAILURES.has(failure)
}
