import { JSON_RPC_CODES } from '@signalbox/http-kit'

import type { StreamFailure } from './events.ts'

/** The errors with which Signalbox ends a stream. */
export const STREAM_FAILURES = {
  NO_TERMINAL_EVENT: { code: JSON_RPC_CODES.INVALID_RESPONSE, message: 'stream ended without a terminal event' },
  INVALID_RESPONSE: { code: JSON_RPC_CODES.INVALID_RESPONSE, message: 'invalid response from agent' },
  TOO_LARGE: { code: JSON_RPC_CODES.INTERNAL_ERROR, message: 'agent response too large' },
  IDLE: { code: JSON_RPC_CODES.AGENT_TIMEOUT, message: 'stream idle timeout' },
  INTERRUPTED: { code: JSON_RPC_CODES.INTERNAL_ERROR, message: 'stream interrupted' },
  SLOW_CONSUMER: { code: JSON_RPC_CODES.INTERNAL_ERROR, message: 'slow consumer' },
  EXPIRED: { code: JSON_RPC_CODES.AUTHENTICATION_FAILED, message: 'Authentication failed' },
  FORBIDDEN: { code: JSON_RPC_CODES.FORBIDDEN, message: 'forbidden' },
  SHUTTING_DOWN: { code: JSON_RPC_CODES.INTERNAL_ERROR, message: 'server is shutting down' },
} as const satisfies Record<string, StreamFailure>
