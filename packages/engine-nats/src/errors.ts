import type { BrokerError } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import { unavailable } from '@signalbox/broker-core/engine'
import { JetStreamApiError } from '@nats-io/jetstream'
import { errors } from '@nats-io/transport-node'

/**
 * The errors of {@link openNatsEngine}. After it has resolved, calls fail only with Broker errors:
 * `ENGINE_UNAVAILABLE`, and those that the Engine port names.
 */
export const NATS_ENGINE_ERRORS = {
  /** An option is out of its range, or a file that it names cannot be read. */
  OPTION_INVALID: 'an option of the engine is not valid',
  /** None of the servers could be reached, and `waitForServers` is false. */
  SERVERS_UNREACHABLE: 'no NATS server can be reached',
  /** A server refused the credentials, or its certificate is not trusted. */
  SERVERS_REFUSED: 'the NATS server refused the connection',
  /**
   * The servers answer, but JetStream is off for this account or cannot store the requested number of
   * replicas.
   */
  JETSTREAM_MISSING: 'JetStream is not available',
} as const

export type NatsEngineErrorCode = keyof typeof NATS_ENGINE_ERRORS

/** `openNatsEngine` rejects with this error. */
export class NatsEngineError extends Error {
  override readonly name = 'NatsEngineError'
  readonly code: NatsEngineErrorCode

  constructor(code: NatsEngineErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/**
 * Returns a Broker error unchanged. Converts any other error to ENGINE_UNAVAILABLE, without NATS's own text,
 * which names subjects and streams.
 */
export function asBrokerError(error: unknown): BrokerError {
  if (isBrokerError(error)) return error
  if (error instanceof JetStreamApiError) return unavailable(`JetStream refused (${error.code})`, { cause: error })
  return unavailable('the NATS servers do not answer', { cause: error })
}

/** JetStream API errors that the engine handles. */
export const API = {
  /** There are fewer servers than the replicas of a stream. */
  NO_SUITABLE_PEERS: 10005,
  MESSAGE_NOT_FOUND: 10037,
  CONSUMER_NOT_FOUND: 10014,
  STREAM_NOT_FOUND: 10059,
  /** Another stream has such subjects already. */
  SUBJECTS_OVERLAP: 10065,
  /** A limit of the stream is reached. */
  STREAM_STORE_FAILED: 10077,
  /** A message to delete does not exist. */
  DELETE_FAILED: 10057,
  WRONG_LAST_SEQUENCE: 10071,
  /**
   * Like {@link API.WRONG_LAST_SEQUENCE}, from newer servers that have not agreed on the last sequence yet.
   */
  WRONG_LAST_SEQUENCE_YET: 10164,
  /** From newer servers: a message with this id is being stored; it may still fail. */
  DUPLICATE_IN_PROCESS: 10158,
  NOT_ENABLED_FOR_ACCOUNT: 10039,
  /** The stream accepts no messages with a time to live. */
  TTL_DISABLED: 10166,
} as const

export function isApiError(error: unknown, ...codes: readonly number[]): error is JetStreamApiError {
  return error instanceof JetStreamApiError && codes.includes(error.code)
}

/** Returns true when another write came before a conditional one. */
export function isWrongSequence(error: unknown): boolean {
  return isApiError(error, API.WRONG_LAST_SEQUENCE, API.WRONG_LAST_SEQUENCE_YET)
}

/** Returns true for a Broker error whose request had no responder. */
export function isNoResponders(error: unknown): boolean {
  return causesOf(error).some(
    (cause) =>
      cause instanceof errors.NoRespondersError || (cause instanceof errors.RequestError && cause.isNoResponders()),
  )
}

/** Returns true for a Broker error whose request the user of the connection may not send. */
export function isForbidden(error: unknown): boolean {
  return causesOf(error).some((cause) => cause instanceof errors.PermissionViolationError)
}

/** Returns true for a Broker error whose request was not answered in time. */
export function isTimeout(error: unknown): boolean {
  return causesOf(error).some((cause) => cause instanceof errors.TimeoutError)
}

function causesOf(error: unknown): Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : []
}
