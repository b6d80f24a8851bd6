import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'

import { A2A_REASONS, ERROR_INFO, errorDetails } from '../native/errors.ts'
import { translateError } from '../wire/index.ts'

/** An error of the gateway or of an agent, for the HTTP+JSON binding. */
export interface RestError {
  /** The JSON-RPC code. */
  readonly code: number
  readonly message: string
  /** The gateway's reason; absent if the code says all. */
  readonly reason?: string
  /** The HTTP status, if the gateway has decided it. */
  readonly status?: number | undefined
  /** Typed details. One that names the reason is added where there is none. */
  readonly details?: readonly unknown[]
}

/** The HTTP status of the gateway's own reasons. */
const STATUS_OF_REASON: ReadonlyMap<string, number> = new Map([
  ['AGENT_NOT_FOUND', 404],
  ['AGENT_UNREACHABLE', 503],
  ['AGENT_TIMEOUT', 504],
  ['AGENT_BUSY', 429],
  ['BROKER_UNAVAILABLE', 503],
  ['LIMIT_EXCEEDED', 429],
  ['SHUTTING_DOWN', 503],
  ['STREAM_IDLE', 504],
  ['UNAUTHENTICATED', 401],
  ['FORBIDDEN', 403],
  ['AGENT_UNAUTHENTICATED', 401],
  ['AGENT_FORBIDDEN', 403],
  ['REQUEST_TOO_LARGE', 413],
  ['IDEMPOTENCY_KEY_INVALID', 400],
  ['IDEMPOTENCY_KEY_REUSED', 422],
  ['CURSOR_INVALID', 400],
  ['OUTCOME_UNKNOWN', 409],
  ['INBOX_FULL', 429],
])

/** The HTTP status of the codes that are no errors of the server. */
const STATUS_OF_CODE: ReadonlyMap<number, number> = new Map([
  [JSON_RPC_CODES.PARSE_ERROR, 400],
  [JSON_RPC_CODES.INVALID_REQUEST, 400],
  [JSON_RPC_CODES.METHOD_NOT_FOUND, 404],
  [JSON_RPC_CODES.INVALID_PARAMS, 400],
  [-32001, 404],
  [-32002, 400],
  [-32003, 400],
  [-32004, 400],
  [-32005, 400],
  [-32007, 400],
  [-32008, 400],
  [-32009, 400],
])

/** The codes whose canonical name is not that of their HTTP status. */
const FAILED_PRECONDITIONS: ReadonlySet<number> = new Set([-32002, -32003, -32004, -32007, -32008, -32009])

/** The canonical names of google.rpc.Code, by HTTP status. */
const NAMES: ReadonlyMap<number, string> = new Map([
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [409, 'ABORTED'],
  [429, 'RESOURCE_EXHAUSTED'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
])

/** Returns the HTTP status of an error. */
export function restStatus({ code, reason = '', status }: RestError): number {
  return status ?? STATUS_OF_REASON.get(reason) ?? STATUS_OF_CODE.get(code) ?? 500
}

/** Returns an error as a google.rpc.Status (A2A 1.0, section 11.6). */
export function restErrorText(error: RestError): string {
  const { code, message } = error
  const status = restStatus(error)
  return JSON.stringify({ error: { code: status, status: nameOf(code, status), message, details: detailsOf(error) } })
}

/** Returns an agent's JSON-RPC error. Data that are no typed details are wrapped as one. */
export function agentRestError(error: JsonObject): RestError {
  // Details have this form in 1.0, and any in 0.3.
  const { code, message, data } = translateError('0.3', '1.0', error)
  return {
    code: typeof code === 'number' ? code : JSON_RPC_CODES.INTERNAL_ERROR,
    message: typeof message === 'string' ? message : '',
    ...(Array.isArray(data) ? { details: data } : {}),
  }
}

function nameOf(code: number, status: number): string {
  if (status === 400 && FAILED_PRECONDITIONS.has(code)) return 'FAILED_PRECONDITION'
  return NAMES.get(status) ?? (status < 500 ? 'INVALID_ARGUMENT' : 'INTERNAL')
}

/** Clients decide by the reason in the details: without it, one status stands for several errors. */
function detailsOf({ code, reason, details = [] }: RestError): readonly unknown[] {
  if (details.some((detail) => isJsonObject(detail) && detail['@type'] === ERROR_INFO)) return details
  const known = reason ?? A2A_REASONS.get(code)
  const added =
    known === undefined ? errorDetails('AGENT_ERROR', { metadata: { code: String(code) } }) : errorDetails(known)
  return [...added, ...details]
}
