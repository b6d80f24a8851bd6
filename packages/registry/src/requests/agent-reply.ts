import type { Reply, ReplyInput } from '@signalbox/broker-core'

/**
 * The reason for a missing or unusable response of the agent.
 */
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

/** The outcome of a request to an agent. */
export interface AgentReply {
  /** `false` when the agent never processed the request; `error` then has the reason. */
  readonly executed: boolean
  /** Empty when `executed` is true. */
  readonly error: string
  /** Set when there is no usable response; also on some executed requests (`invalid_response`). */
  readonly failure?: AgentFailure
  /** The HTTP status of the agent's response; 0 without a response. */
  readonly status: number
  /** The agent's response, unchanged. */
  readonly body: Uint8Array
}

const FAILURES: ReadonlySet<string> = new Set<AgentFailure>([
  'timeout',
  'unreachable',
  'unavailable',
  'too_large',
  'busy',
  'not_found',
  'invalid_response',
])

/** Encodes a reply as the reply of the Query. */
export function encodeAgentReply({ error, failure, status, body }: AgentReply): ReplyInput {
  return {
    error,
    body,
    tags: { a2a_status: String(status), ...(failure === undefined ? {} : { a2a_failure: failure }) },
  }
}

export function decodeAgentReply({ executed, error, body, tags }: Reply): AgentReply {
  const { a2a_status: status = '0', a2a_failure: failure = '' } = tags
  return { executed, error, status: Number(status), body, ...(isFailure(failure) ? { failure } : {}) }
}

function isFailure(failure: string): failure is AgentFailure {
  return FAILURES.has(failure)
}
