/**
 * The errors of Broker and Engine calls.
 *
 * Codes are stable and part of the public surface: connectors map them to their protocol in one table each, and
 * `docs/reference/errors.md` lists them. `details` has the values for programs; the message is for a person and says
 * what to do.
 */
export const BROKER_ERRORS = {
  /**
   * An argument of the call is missing, or has the wrong type or an invalid value. `details.argument`,
   * `details.allowed`.
   */
  ARGUMENT_INVALID: 'an argument of the call is missing, mistyped or out of range',
  /** The channel name breaks the naming rules. `details.channel` (shortened), `details.reason`. */
  CHANNEL_INVALID: 'the channel name breaks the naming rules',
  /** The channel name begins with `_AGENTS_.`, the prefix of the broker's channels. `details.channel`. */
  CHANNEL_RESERVED: 'the channel name begins with the reserved prefix',
  /**
   * The policy denies the action, or the caller's credentials do not allow it. `details.action`, `details.pattern`,
   * `details.channel`; `details.reason` is `credentials` if the policy allows the action.
   */
  FORBIDDEN: 'the policy or the credentials do not let the caller do this',
  /**
   * The channel does not exist, and the call does not create it. `details.channel`, `details.type`; `details.types` if
   * the name exists with other types.
   */
  CHANNEL_NOT_FOUND: 'the channel does not exist',
  /** The call would create more channels than the engine allows. `details.limit`. */
  CHANNEL_LIMIT: 'the limit on the number of channels is reached',
  /** The events store has as many durable groups as the engine allows. `details.channel`, `details.limit`. */
  GROUP_LIMIT: 'the limit on the number of durable groups of an events store is reached',
  /** The caller reached one of its limits. `details.name` is the limit, as a label value; `details.limit` its value. */
  CALLER_LIMIT: 'a limit of the caller is reached',
  /** A part of the message is not valid. `details.field`. */
  MESSAGE_INVALID: 'a part of the message is not valid',
  /**
   * The body does not match the schema of its channel, or the channel has no schema with the name that the message
   * selects. `details.problems` has the first ten, each `{pointer, problem}`; `details.version`, `details.versions`.
   */
  SCHEMA_MISMATCH: 'the body does not match the schema of its channel',
  /**
   * This node or engine cannot apply a setting of the channel, for example one of a newer version. `details.channel`,
   * `details.type`.
   */
  SETTING_UNSUPPORTED: 'a setting of the channel cannot be applied',
  /** Body, metadata and tags together exceed the limit. `details.bytes`, `details.limit`. */
  MESSAGE_TOO_LARGE: 'the message is larger than the limit',
  /** The queue reached its limit of messages or bytes. `details.channel`, `details.limit`. */
  QUEUE_FULL: 'the queue is full',
  /** A message was rejected, and has no dead-letter queue to move to. `details.channel`. */
  NO_DEAD_LETTER_QUEUE: 'a rejected message has no dead-letter queue',
  /** The last entry of the key does not have the expected sequence. `details.key`, `details.last`. */
  CONFLICT: 'the last entry of the key has a different sequence than expected',
  /** No subscriber was available while the command or query waited. `details.timeoutMs`. */
  NO_SUBSCRIBER: 'no subscriber was available',
  /** A subscriber received the command or query, and did not answer in time. `details.timeoutMs`. */
  REQUEST_TIMEOUT: 'the subscriber did not answer in time',
  /**
   * The engine cannot serve the call now: disk full, connection lost, or closing. `details.reason`. Try again later.
   */
  ENGINE_UNAVAILABLE: 'the storage engine is not available',
} as const

export type BrokerErrorCode = keyof typeof BROKER_ERRORS

/** Marks the errors of every copy of this package that a process loads: a bundle has a copy, and its host another one. */
const BROKER_ERROR = Symbol.for('@signalbox/broker-core/BrokerError')

export class BrokerError extends Error {
  override readonly name = 'BrokerError'

  static {
    // Not a member: the types of two copies stay compatible.
    Object.defineProperty(this.prototype, BROKER_ERROR, { value: true })
  }

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

/** Returns whether an unknown error is a {@link BrokerError}, also one of another copy of this package, optionally with a given code. */
export function isBrokerError(error: unknown, code?: BrokerErrorCode): error is BrokerError {
  return isMarked(error) && (code === undefined || error.code === code)
}

function isMarked(error: unknown): error is BrokerError {
  return error instanceof Error && BROKER_ERROR in error
}

/** Returns the error for a durable group that is one too many. */
export function groupLimit(channel: string, limit: number): BrokerError {
  return new BrokerError(
    'GROUP_LIMIT',
    `the events store ${JSON.stringify(channel.slice(0, 64))} has ${limit} durable groups, the most that are allowed; use an existing group, or one without durable`,
    { channel, limit },
  )
}

/** Returns the error for a call that an engine cannot serve now. */
export function unavailable(reason: string, options?: ErrorOptions): BrokerError {
  return new BrokerError(
    'ENGINE_UNAVAILABLE',
    `the storage engine is not available: ${reason}; try again later`,
    { reason },
    options,
  )
}

/** Returns the text that a log shows for a thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
