import type { Reply, ReplyInput } from '@signalbox/broker-core'

/** Why there is no response of the agent's to pass on (specification, "Transport versus application errors"; A3). */
export type AgentFailure =
  /** The deadline passed. */
  | 'timeout'
  /** Connection refused, DNS failure, reset before a response. */
  | 'unreachable'
  /** HTTP 502, 503 or 504. */
  | 'unavailable'
  /** The response is larger than AgentMaxResponseBytes. */
  | 'too_large'
  /** AgentMaxConcurrency is reached. */
  | 'busy'
  /** The serving node does not know the agent any more. */
  | 'not_found'
  /** The agent answered with what cannot be an answer: a redirect, an event stream to a plain call. */
  | 'invalid_response'

/** How a request to an agent ended. */
export interface AgentReply {
  /** False when the agent never processed the request; `error` then says why. */
  readonly executed: boolean
  /** Empty when `executed`. */
  readonly error: string
  /** Set when there is no response to pass on; also on some that were executed (`invalid_response`). */
  readonly failure?: AgentFailure
  /** HTTP status of the agent's response; 0 when there is none. */
  readonly status: number
  /** The agent's response, byte for byte. */
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

/** The Query's reply. */
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
