import { isBrokerError } from '@signalbox/broker-core'
import type { BrokerErrorCode } from '@signalbox/broker-core'
import { parameterProblemsText, problemsText } from '@signalbox/http-kit/internal'
import type { Role } from '@signalbox/http-kit'
import type { ArgumentProblem, ParameterProblem } from '@signalbox/http-kit/internal'

/**
 * The errors of this listener: the HTTP status and the condition of each. A valid request that
 * cannot be executed is 200 with `error: true`; other errors
 * have a 4xx or 5xx status.
 */
export const MANAGEMENT_ERRORS = {
  /** `data.problems` lists each parameter: `{parameter, given?, allowed}`. */
  PARAMETER_INVALID: { status: 200, when: 'a query parameter is unknown, repeated, missing, mistyped or out of range' },
  /** `data` is null. */
  NOT_READY: { status: 200, when: 'the server is still starting' },
  REQUEST_REJECTED: { status: 200, when: 'the subscriber rejected the command or query' },
  AGENT_NOT_FOUND: { status: 200, when: 'no agent is registered under the id' },
  /** `data.json_rpc_code` is the code that other callers of the agent get. */
  AGENT_CALL_FAILED: { status: 200, when: 'the agent did not begin to answer; `error_string` says why' },
  INBOX_NOT_FOUND: { status: 200, when: 'the agent has no inbox' },
  /** `data.problems` lists each problem: `{argument, given?, allowed}`. */
  SETTINGS_INVALID: { status: 200, when: 'an entry of the channel settings is not valid' },
  /** `data.reason` says why. */
  SETTING_UNSUPPORTED: { status: 200, when: 'the engine cannot apply an entry of the channel settings now' },
  SETTINGS_NOT_FOUND: { status: 200, when: 'no entry of the channel settings has the type and the match' },
  SCHEDULE_NOT_FOUND: { status: 200, when: 'no schedule has the id' },
  WEBHOOK_NOT_FOUND: { status: 200, when: 'no webhook subscription has the id' },
  MESSAGE_NOT_FOUND: { status: 200, when: 'the channel shows no such message: it is gone, leased or delayed' },
  REDRIVE_REFUSED: { status: 200, when: 'the dead letter could not be sent back; `data.reason` says why' },
  REDRIVE_NOT_FOUND: { status: 200, when: 'the node runs no redrive with the id' },
  REDRIVE_LIMIT: { status: 200, when: 'the node runs as many redrives as it may' },
  TASK_NOT_FOUND: { status: 200, when: 'no task has the id, or its events are not kept' },
  STREAM_NOT_FOUND: { status: 200, when: 'the node has no open stream with the id' },
  TOOL_NOT_FOUND: { status: 200, when: 'there is no tool with the name' },
  BODY_INVALID: { status: 400, when: 'the body is not JSON in UTF-8' },
  UNAUTHENTICATED: { status: 401, when: 'the credentials are missing or could not be verified' },
  ORIGIN_REFUSED: { status: 403, when: "the browser's origin is not trusted" },
  /** `data.role` is the role that is required. */
  ROLE_MISSING: { status: 403, when: 'the caller does not have the role that the route requires' },
  BODY_TOO_LARGE: { status: 413, when: 'the body is larger than MAX_BODY_BYTES' },
  MEDIA_TYPE_UNSUPPORTED: { status: 415, when: 'the body is not application/json, or it is encoded' },
  UPGRADE_REQUIRED: { status: 426, when: 'the request asks for no WebSocket' },
  /** `data.limit` names the limit; `data.retry_after_seconds` is the time until a retry. */
  TOO_MANY_REQUESTS: { status: 429, when: 'a limit of the caller or of the server is reached' },
  UPGRADE_FAILED: { status: 500, when: 'the WebSocket handshake or its filters are invalid' },
  MONITOR_LIMIT: { status: 500, when: 'the maximum number of monitors is open' },
  INTERNAL: { status: 500, when: 'the server failed; its log has the error' },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly when: string }>>

export type ManagementErrorCode = keyof typeof MANAGEMENT_ERRORS

/** An error for the operator. Its message says what is wrong, and the allowed values. */
export class ManagementError extends Error {
  override readonly name = 'ManagementError'
  readonly status: number
  readonly code: ManagementErrorCode | BrokerErrorCode
  /** Sent to the operator in `data`, with the code. */
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

/** Converts an error for the operator. An internal error shows no details. */
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

export function messageNotFound(
  { type, channel }: { readonly type: string; readonly channel: string },
  { sequence, id }: { readonly sequence?: number | undefined; readonly id?: string | undefined },
): ManagementError {
  const names = [
    ...(sequence === undefined ? [] : [`the sequence ${sequence}`]),
    ...(id === undefined ? [] : [`the id ${JSON.stringify(id)}`]),
  ]
  return new ManagementError(
    'MESSAGE_NOT_FOUND',
    `${type} ${JSON.stringify(channel)} shows no message with ${names.join(' and ')}: it is gone, leased or delayed; /api/messages lists the messages`,
    { type, channel, sequence, id },
  )
}

export function roleMissing(role: Role): ManagementError {
  return new ManagementError('ROLE_MISSING', `the caller does not have the role ${role}, which this route requires`, {
    role,
  })
}

/** Returns the error with the text of the specification, "HTTP status codes". */
export function notReady(): ManagementError {
  return new ManagementError('NOT_READY', 'api service not ready')
}

/** @param details `problems` if the query is invalid */
export function upgradeFailed(
  reason: string,
  details: { readonly problems?: readonly ParameterProblem[] } = {},
  options?: ErrorOptions,
): ManagementError {
  const problems = details.problems === undefined ? '' : `: ${parameterProblemsText(details.problems)}`
  return new ManagementError('UPGRADE_FAILED', `websocket upgrade failed: ${reason}${problems}`, details, options)
}
