import { isBrokerError, RESERVED_PREFIX } from '@signalbox/broker-core'
import type { BrokerErrorCode } from '@signalbox/broker-core'
import { isWebhookFailure } from '@signalbox/broker-core/ports'
import { parameterProblemsText } from '@signalbox/http-kit/internal'
import type { ParameterProblem } from '@signalbox/http-kit/internal'

/** The errors of this connector, each with its HTTP status and its cause. */
export const CE_ERRORS = {
  /** `data.problems` lists each parameter as `{parameter, given?, allowed}`. */
  PARAMETER_INVALID: { status: 400, when: 'a query parameter is unknown, repeated, missing, mistyped or out of range' },
  /** `data.attribute` names the wrong attribute, if it is a single one. */
  EVENT_INVALID: { status: 400, when: 'the body or the headers are not a valid CloudEvent' },
  /** `data.allowed` */
  IDEMPOTENCY_KEY_INVALID: {
    status: 400,
    when: 'the header Idempotency-Key is not a valid key, or the server keeps no keys',
  },
  UNAUTHENTICATED: { status: 401, when: 'the credentials are missing or could not be verified' },
  ORIGIN_REFUSED: { status: 403, when: "the browser's origin is not trusted" },
  REQUEST_UNKNOWN: { status: 404, when: 'no request with this request_id waits for an answer of this caller' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    when: 'the path does not support the method; the header Allow names the supported one',
  },
  OUTCOME_UNKNOWN: {
    status: 409,
    when: 'a request with this idempotency key may have been executed, and its answer is not known; it is not sent again',
  },
  BODY_TOO_LARGE: { status: 413, when: 'the body is larger than MAX_BODY_BYTES' },
  MEDIA_TYPE_UNSUPPORTED: {
    status: 415,
    when: 'the request has no CloudEvents media type and no ce-specversion header, or it has a Content-Encoding',
  },
  IDEMPOTENCY_KEY_REUSED: { status: 422, when: 'the idempotency key belongs to a request with another event' },
  /**
   * `data.limit` names the limit: see docs/reference/limits.md. `Retry-After` gives the time until the next attempt.
   */
  TOO_MANY_REQUESTS: { status: 429, when: 'a limit of the caller or of the server is reached' },
  STREAM_LIMIT: { status: 429, when: 'the limit of open subscriptions is reached' },
  /** `data.member` names the member of the subscription. */
  SUBSCRIPTION_INVALID: {
    status: 400,
    when: 'a member of the webhook subscription is missing, mistyped or out of range',
  },
  SUBSCRIPTION_UNKNOWN: { status: 404, when: 'the caller has no webhook subscription with this id' },
  /** `data.limit`. */
  SUBSCRIPTION_LIMIT: {
    status: 429,
    when: 'the caller has as many webhook subscriptions as WEBHOOKS_MAX_PER_OWNER allows',
  },
  ENDPOINT_REFUSED: { status: 400, when: 'the server may not call the URL of the webhook' },
  ENDPOINT_UNVERIFIED: { status: 400, when: 'the endpoint of the webhook did not agree to receive messages' },
  /** `data.limit`, `data.retryAfterSeconds`. */
  HANDSHAKE_LIMIT: {
    status: 429,
    when: 'too many endpoints of the caller, or of the same host, did not agree in the last minute (WEBHOOKS_MAX_FAILED_HANDSHAKES)',
  },
  WEBHOOKS_UNAVAILABLE: {
    status: 503,
    when: 'the webhook subscriptions are not read yet, or the server is shutting down',
  },
  INTERNAL: { status: 500, when: 'the server failed' },
  SHUTTING_DOWN: { status: 503, when: 'the server is shutting down' },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly when: string }>>

/** The code of an error of this connector. */
export type CeErrorCode = keyof typeof CE_ERRORS

/** The HTTP status of each Broker error at this connector. */
const BROKER_STATUS: Readonly<Record<BrokerErrorCode, number>> = {
  ARGUMENT_INVALID: 400,
  CHANNEL_INVALID: 400,
  CHANNEL_RESERVED: 400,
  FORBIDDEN: 403,
  CHANNEL_NOT_FOUND: 404,
  CHANNEL_LIMIT: 429,
  GROUP_LIMIT: 429,
  CALLER_LIMIT: 429,
  MESSAGE_INVALID: 400,
  SCHEMA_MISMATCH: 400,
  SETTING_UNSUPPORTED: 503,
  MESSAGE_TOO_LARGE: 413,
  QUEUE_FULL: 429,
  NO_DEAD_LETTER_QUEUE: 409,
  CONFLICT: 500,
  NO_SUBSCRIBER: 503,
  REQUEST_TIMEOUT: 503,
  ENGINE_UNAVAILABLE: 503,
}

/** A failure that the client receives. The message names the problem and the allowed values. */
export class CeError extends Error {
  override readonly name = 'CeError'
  readonly status: number
  readonly code: CeErrorCode | BrokerErrorCode
  /** Further fields of `data`, in addition to the code. */
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    code: CeErrorCode | BrokerErrorCode,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.code = code
    this.status = isOwnCode(code) ? CE_ERRORS[code].status : BROKER_STATUS[code]
    this.details = details
  }
}

/** Returns the error for invalid query parameters. */
export function invalidParameters(problems: readonly ParameterProblem[]): CeError {
  return new CeError('PARAMETER_INVALID', `invalid query parameters: ${parameterProblemsText(problems)}`, { problems })
}

function isOwnCode(code: CeErrorCode | BrokerErrorCode): code is CeErrorCode {
  return Object.hasOwn(CE_ERRORS, code)
}

/** The text for a reserved channel, which the specification fixes. */
const RESERVED = 'reserved channel name'

/** The remedy for a reserved channel, in the details: the message is fixed. */
const RESERVED_REMEDY = `a name that does not begin with ${RESERVED_PREFIX}: channels with this prefix belong to the broker`

/** Converts an error for the client. An internal error reveals no details. */
export function toCeError(error: unknown): CeError {
  if (error instanceof CeError) return error
  if (isWebhookFailure(error)) return new CeError(error.code, error.message, error.details, { cause: error })
  if (isBrokerError(error) && error.code !== 'CONFLICT') {
    const message = error.code === 'CHANNEL_RESERVED' ? RESERVED : error.message
    const details = error.code === 'CHANNEL_RESERVED' ? { ...error.details, allowed: RESERVED_REMEDY } : error.details
    return new CeError(error.code, message, details, { cause: error })
  }
  return new CeError('INTERNAL', 'internal error', {}, { cause: error })
}
