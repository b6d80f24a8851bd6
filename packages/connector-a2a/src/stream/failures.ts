import type { Refusal } from '@signalbox/http-kit'
import { JSON_RPC_CODES } from '@signalbox/http-kit'

import { A2A_CODES } from '../native/errors.ts'

/** An error with which Signalbox ends a stream. */
export interface StreamFailure {
  readonly code: number
  readonly message: string
  /** The code and the reason for a client that speaks an official version of A2A. */
  readonly native: {
    readonly code: number
    readonly reason: string
    /** The setting of the limit that was reached. */
    readonly setting?: string
  }
}

const INTERNAL = JSON_RPC_CODES.INTERNAL_ERROR
const INVALID = { code: A2A_CODES.INVALID_AGENT_RESPONSE, reason: 'INVALID_AGENT_RESPONSE' }

/** The errors with which Signalbox ends a stream. */
export const STREAM_FAILURES = {
  NO_TERMINAL_EVENT: {
    code: JSON_RPC_CODES.INVALID_RESPONSE,
    message: 'stream ended without a terminal event',
    native: { code: INTERNAL, reason: 'STREAM_INTERRUPTED' },
  },
  INVALID_RESPONSE: {
    code: JSON_RPC_CODES.INVALID_RESPONSE,
    message: 'invalid response from agent',
    native: INVALID,
  },
  TOO_LARGE: {
    code: INTERNAL,
    message: 'agent response too large',
    native: { code: INTERNAL, reason: 'RESPONSE_TOO_LARGE' },
  },
  IDLE: {
    code: JSON_RPC_CODES.AGENT_TIMEOUT,
    message: 'stream idle timeout',
    native: { code: INTERNAL, reason: 'STREAM_IDLE', setting: 'CONNECTORSA2_A_MAX_SSE_IDLE_SECONDS' },
  },
  TIMED_OUT: {
    code: JSON_RPC_CODES.AGENT_TIMEOUT,
    message: 'stream timeout',
    native: { code: INTERNAL, reason: 'STREAM_TIMEOUT' },
  },
  INTERRUPTED: {
    code: INTERNAL,
    message: 'stream interrupted',
    native: { code: INTERNAL, reason: 'STREAM_INTERRUPTED' },
  },
  AGENT_LOST: {
    code: JSON_RPC_CODES.AGENT_UNAVAILABLE,
    message: 'the connection to the agent was lost before it named a task',
    native: { code: INTERNAL, reason: 'AGENT_LOST' },
  },
  SLOW_CONSUMER: {
    code: INTERNAL,
    message: 'slow consumer',
    native: { code: INTERNAL, reason: 'SLOW_CONSUMER', setting: 'CONNECTORSA2_A_SLOW_CONSUMER_SECONDS' },
  },
  EXPIRED: {
    code: JSON_RPC_CODES.AUTHENTICATION_FAILED,
    message: 'Authentication failed',
    native: { code: JSON_RPC_CODES.AUTHENTICATION_FAILED, reason: 'UNAUTHENTICATED' },
  },
  FORBIDDEN: {
    code: JSON_RPC_CODES.FORBIDDEN,
    message: 'forbidden',
    native: { code: JSON_RPC_CODES.FORBIDDEN, reason: 'FORBIDDEN' },
  },
  SHUTTING_DOWN: {
    code: INTERNAL,
    message: 'server is shutting down',
    native: { code: INTERNAL, reason: 'SHUTTING_DOWN' },
  },
} as const satisfies Record<string, StreamFailure>

/** Returns the error that ends a stream whose event a limit of this node has refused. */
export function busy({ message }: Refusal): StreamFailure {
  return {
    code: INTERNAL,
    message: `server busy: ${message}`,
    native: { code: INTERNAL, reason: 'LIMIT_EXCEEDED' },
  }
}
