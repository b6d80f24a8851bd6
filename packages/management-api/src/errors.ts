import { isBrokerError } from '@signalbox/broker-core'
import type { BrokerErrorCode } from '@signalbox/broker-core'
import { parameterProblemsText, problemsText } from '@signalbox/http-kit'
import type { ArgumentProblem, ParameterProblem, Role } from '@signalbox/http-kit'

/**
 * Every way a request can fail at this listener itself: its HTTP status, and when. What was asked and cannot be done is
 * 200 with `error: true` (specification, "HTTP status codes"); what is no request for this listener has a status of its own.
 */
export const MANAGEMENT_ERRORS = {
  /** `data.problems` lists each parameter: `{parameter, given?, allowed}`. */
  PARAMETER_INVALID: { status: 200, when: 'a query parameter is unknown, repeated, missing, mistyped or out of range' },
  /** `data` is null. */
  NOT_READY: { status: 200, when: 'the server has not finished its start' },
  REQUEST_REJECTED: { status: 200, when: 'the subscriber rejected the command or query' },
  AGENT_NOT_FOUND: { status: 200, when: 'no agent is registered under the id' },
  BODY_INVALID: { status: 400, when: 'the body is not JSON in UTF-8' },
  UNAUTHENTICATED: { status: 401, when: 'the credentials are missing or could not be verified' },
  ORIGIN_REFUSED: { status: 403, when: "the browser's origin is not trusted" },
  /** `data.role` is the role that is needed. */
  ROLE_MISSING: { status: 403, when: 'the caller is known and has not the role that the route needs' },
  BODY_TOO_LARGE: { status: 413, when: 'the body is larger than MAX_BODY_BYTES' },
  MEDIA_TYPE_UNSUPPORTED: { status: 415, when: 'the body is not application/json, or it is encoded' },
  /** `data.limit` names the limit, `data.retry_after_seconds` says when to try again. */
  TOO_MANY_REQUESTS: { status: 429, when: 'a limit of the caller or of the server is reached' },
  UPGRADE_FAILED: { status: 500, when: 'the request is not a WebSocket handshake, or its filters are not valid' },
  MONITOR_LIMIT: { status: 500, when: 'as many monitors are open as may be' },
  INTERNAL: { status: 500, when: 'a failure of the server itself' },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly when: string }>>

export type ManagementErrorCode = keyof typeof MANAGEMENT_ERRORS

/** A failure that goes to the operator: the message says what is wrong and what is allowed. */
export class ManagementError extends Error {
  override readonly name = 'ManagementError'
  readonly status: number
  readonly code: ManagementErrorCode | BrokerErrorCode
  /** Goes to the operator in `data`, beside the code. */
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    code: ManagementErrorCode | BrokerErrorCode,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.code = code
    this.status = isOwnCode(code) ? MANAGEMENT_ERRORS[code].status : 200
    this.details = details
  }
}

function isOwnCode(code: ManagementErrorCode | BrokerErrorCode): code is ManagementErrorCode {
  return Object.hasOwn(MANAGEMENT_ERRORS, code)
}

/** What the operator is told of an error; an internal one shows nothing of its inside. */
export function toManagementError(error: unknown): ManagementError {
  if (error instanceof ManagementError) return error
  if (isBrokerError(error)) return new ManagementError(error.code, error.message, error.details, { cause: error })
  return new ManagementError('INTERNAL', 'internal error', {}, { cause: error })
}

export function invalidParameters(problems: readonly ParameterProblem[]): ManagementError {
  return new ManagementError('PARAMETER_INVALID', `invalid query parameters: ${parameterProblemsText(problems)}`, {
    problems,
  })
}

export function invalidArguments(action: string, problems: readonly ArgumentProblem[]): ManagementError {
  return new ManagementError('ARGUMENT_INVALID', `invalid arguments for ${action}: ${problemsText(problems)}`, {
    problems,
  })
}

export function roleMissing(role: Role): ManagementError {
  return new ManagementError('ROLE_MISSING', `the role ${role} is needed`, { role })
}

/** The words of the specification, "HTTP status codes". */
export function notReady(): ManagementError {
  return new ManagementError('NOT_READY', 'api service not ready')
}

/** @param details `problems`, where the query is to blame */
export function upgradeFailed(
  reason: string,
  details: { readonly problems?: readonly ParameterProblem[] } = {},
  options?: ErrorOptions,
): ManagementError {
  const problems = details.problems === undefined ? '' : `: ${parameterProblemsText(details.problems)}`
  return new ManagementError('UPGRADE_FAILED', `websocket upgrade failed: ${reason}${problems}`, details, options)
}
