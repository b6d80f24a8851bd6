import { isBrokerError } from '@signalbox/broker-core'
import type { BrokerErrorCode } from '@signalbox/broker-core'
import type { WebhookErrorCode } from '@signalbox/broker-core/ports'
import { isWebhookFailure } from '@signalbox/broker-core/ports'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { internalError } from '@signalbox/http-kit/internal'

import type { EventsDialect, EventsErrorName } from '../wire/events-profile.ts'

type Answer = EventsErrorName | 'argument' | 'unavailable' | 'internal'

/** The answer for each Broker error. */
const BROKER: Readonly<Record<BrokerErrorCode, Answer>> = {
  ARGUMENT_INVALID: 'argument',
  CHANNEL_INVALID: 'argument',
  CHANNEL_RESERVED: 'argument',
  MESSAGE_INVALID: 'internal',
  MESSAGE_TOO_LARGE: 'internal',
  SCHEMA_MISMATCH: 'internal',
  SETTING_UNSUPPORTED: 'internal',
  FORBIDDEN: 'FORBIDDEN',
  CHANNEL_NOT_FOUND: 'NOT_FOUND',
  CHANNEL_LIMIT: 'RESOURCE_EXHAUSTED',
  GROUP_LIMIT: 'RESOURCE_EXHAUSTED',
  CALLER_LIMIT: 'RESOURCE_EXHAUSTED',
  QUEUE_FULL: 'internal',
  NO_DEAD_LETTER_QUEUE: 'internal',
  NO_SUBSCRIBER: 'internal',
  REQUEST_TIMEOUT: 'internal',
  ENGINE_UNAVAILABLE: 'unavailable',
  CONFLICT: 'internal',
}

/** The answer for each error of webhooks. */
const WEBHOOKS: Readonly<Record<WebhookErrorCode, Answer>> = {
  SUBSCRIPTION_INVALID: 'argument',
  SUBSCRIPTION_UNKNOWN: 'NOT_FOUND',
  SUBSCRIPTION_LIMIT: 'RESOURCE_EXHAUSTED',
  ENDPOINT_REFUSED: 'CALLBACK_ENDPOINT',
  ENDPOINT_UNVERIFIED: 'CALLBACK_ENDPOINT',
  HANDSHAKE_LIMIT: 'RESOURCE_EXHAUSTED',
  WEBHOOKS_UNAVAILABLE: 'unavailable',
}

/** Returns the JSON-RPC error for an error of a request about events. */
export function eventsError(error: unknown, dialect: EventsDialect): JsonRpcError {
  if (error instanceof JsonRpcError) return error
  if (isBrokerError(error)) return answerOf(BROKER[error.code], error, dialect)
  if (!isWebhookFailure(error)) return internalError(error)
  const { reason = 'connection_refused' } = error.details
  return answerOf(WEBHOOKS[error.code], error, dialect, { reason })
}

function answerOf(answer: Answer, error: Error, dialect: EventsDialect, callback?: object): JsonRpcError {
  const { message } = error
  if (answer === 'argument') return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid params: ${message}`)
  if (answer === 'unavailable') return new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, message)
  if (answer === 'internal') return internalError(error)
  return dialect.error(answer, message, answer === 'CALLBACK_ENDPOINT' ? callback : undefined)
}
