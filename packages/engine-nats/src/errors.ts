import { BrokerError, unavailable } from '@signalbox/broker-core/engine'
import { JetStreamApiError } from '@nats-io/jetstream'
import { errors } from '@nats-io/transport-node'

/**
 * Why a connection cannot be opened, in one table. Once it is open, calls fail with Broker errors only
 * (`ENGINE_UNAVAILABLE` and the ones the Engine port names).
 */
export const NATS_ENGINE_ERRORS = {
  /** An option is out of its range, or a file that it names cannot be read. */
  OPTION_INVALID: 'an option of the engine is not valid',
  /** None of the servers could be reached, and the engine was told not to wait. */
  SERVERS_UNREACHABLE: 'no NATS server can be reached',
  /** A server refused the credentials, or its certificate is not trusted. */
  SERVERS_REFUSED: 'the NATS server refused the connection',
  /** The servers answer, but JetStream is off for this account or cannot hold the replicas asked for. */
  JETSTREAM_MISSING: 'JetStream is not available',
} as const

export type NatsEngineErrorCode = keyof typeof NATS_ENGINE_ERRORS

/** `openNatsEngine` rejects with this. */
export class NatsEngineError extends Error {
  override readonly name = 'NatsEngineError'
  readonly code: NatsEngineErrorCode

  constructor(code: NatsEngineErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** A Broker error as it is; whatever NATS said otherwise is told as not available, without its words on subjects and streams. */
export function asBrokerError(error: unknown): BrokerError {
  if (error instanceof BrokerError) return error
  if (error instanceof JetStreamApiError) return unavailable(`JetStream refused (${error.code})`, { cause: error })
  return unavailable('the NATS servers do not answer', { cause: error })
}

/** JetStream API errors that mean something to the engine. */
export const API = {
  /** Fewer servers are there than a stream is to have replicas. */
  NO_SUITABLE_PEERS: 10005,
  MESSAGE_NOT_FOUND: 10037,
  CONSUMER_NOT_FOUND: 10014,
  STREAM_NOT_FOUND: 10059,
  /** Another stream has such subjects already. */
  SUBJECTS_OVERLAP: 10065,
  /** A limit of the stream is reached. */
  STREAM_STORE_FAILED: 10077,
  /** A message to delete is not there. */
  DELETE_FAILED: 10057,
  WRONG_LAST_SEQUENCE: 10071,
  /** As {@link API.WRONG_LAST_SEQUENCE}, of newer servers that have not agreed on the last one yet. */
  WRONG_LAST_SEQUENCE_YET: 10164,
  /** Of newer servers: a message with this id is just being stored, or will not be. */
  DUPLICATE_IN_PROCESS: 10158,
  NOT_ENABLED_FOR_ACCOUNT: 10039,
  /** The stream takes no message with a time to live. */
  TTL_DISABLED: 10166,
} as const

export function isApiError(error: unknown, ...codes: readonly number[]): error is JetStreamApiError {
  return error instanceof JetStreamApiError && codes.includes(error.code)
}

/** Whether somebody else wrote first what was to be written after a certain message. */
export function isWrongSequence(error: unknown): boolean {
  return isApiError(error, API.WRONG_LAST_SEQUENCE, API.WRONG_LAST_SEQUENCE_YET)
}

/** Whether a Broker error stands for a request that nobody was there to answer. */
export function isNoResponders(error: unknown): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof errors.NoRespondersError) return true
    if (cause instanceof errors.RequestError && cause.isNoResponders()) return true
  }
  return false
}
