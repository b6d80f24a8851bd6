/**
 * Every way a Broker or Engine call can fail, in one table.
 *
 * Codes are stable and part of the public surface: connectors map them to their protocol in one table each, and
 * `docs/reference/errors.md` lists them. `details` carries what a program needs to react; the message tells a person what to do.
 */
export const BROKER_ERRORS = {
  /** An argument of the call itself is missing, mistyped or out of range. `details.argument`, `details.allowed`. */
  ARGUMENT_INVALID: 'an argument of the call is missing, mistyped or out of range',
  /** The channel name breaks rule C1. `details.channel` (cut), `details.reason`. */
  CHANNEL_INVALID: 'the channel name breaks the naming rules',
  /** The channel name begins with `_AGENTS_.`, which belongs to the broker (M8). `details.channel`. */
  CHANNEL_RESERVED: 'the channel name begins with the reserved prefix',
  /** The policy does not let the caller do this (S4). `details.action`, `details.pattern`, `details.channel`. */
  FORBIDDEN: 'the policy does not let the caller do this',
  /** The channel does not exist, where the call needs one that does. `details.channel`, `details.type`; `details.types` if the name has other types. */
  CHANNEL_NOT_FOUND: 'the channel does not exist',
  /** The call would create one channel more than the engine holds (C4). `details.limit`. */
  CHANNEL_LIMIT: 'the limit on the number of channels is reached',
  /** The caller holds as much as one caller may. `details.name` is the limit, as a label value; `details.limit` its size. */
  CALLER_LIMIT: 'a limit of the caller is reached',
  /** A part of the message is not what it must be. `details.field`. */
  MESSAGE_INVALID: 'a part of the message is not valid',
  /** Body, metadata and tags together are over the limit (C4). `details.bytes`, `details.limit`. */
  MESSAGE_TOO_LARGE: 'the message is larger than the limit',
  /** The queue holds as many messages or bytes as it may (C4). `details.channel`, `details.limit`. */
  QUEUE_FULL: 'the queue is full',
  /** The entry is not the last of its key as the caller expected it to be. `details.key`, `details.last`. */
  CONFLICT: 'somebody else wrote this key first',
  /** A command or query found nobody subscribed for as long as it waited (M11). `details.timeoutMs`. */
  NO_SUBSCRIBER: 'nobody was subscribed',
  /** A command or query reached a subscriber that did not answer in time (M11). `details.timeoutMs`. */
  REQUEST_TIMEOUT: 'the subscriber did not answer in time',
  /** The engine cannot do its work now: disk full, connection lost, closing. `details.reason`. Try again later. */
  ENGINE_UNAVAILABLE: 'the storage engine is not available',
} as const

export type BrokerErrorCode = keyof typeof BROKER_ERRORS

export class BrokerError extends Error {
  override readonly name = 'BrokerError'
  readonly code: BrokerErrorCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    code: BrokerErrorCode,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.code = code
    this.details = details
  }
}

/** Narrows an unknown error to a {@link BrokerError}, optionally of one code. */
export function isBrokerError(error: unknown, code?: BrokerErrorCode): error is BrokerError {
  return error instanceof BrokerError && (code === undefined || error.code === code)
}

/** The error of every call that an engine cannot serve now. */
export function unavailable(reason: string, options?: ErrorOptions): BrokerError {
  return new BrokerError(
    'ENGINE_UNAVAILABLE',
    `the storage engine is not available: ${reason}; try again later`,
    { reason },
    options,
  )
}

/** What a log may say of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
