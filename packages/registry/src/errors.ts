/**
 * The errors of the registry: HTTP status and condition of each. `docs/reference/errors.md` lists the codes.
 */
export const REGISTRY_ERRORS = {
  /** `details` lists every problem: `{field, given?, allowed}`. */
  CARD_INVALID: { status: 400, when: 'the agent card is not valid, or its url may not be called' },
  /** For the routes of an inbox, `details` lists every problem: `{field, given?, allowed}`. */
  BODY_INVALID: { status: 400, when: 'the body is not JSON, or a member of it is missing, unknown or not allowed' },
  /** `details` lists every problem: `{parameter, given?, allowed}`. */
  PARAMETER_INVALID: { status: 400, when: 'a query parameter is unknown, repeated or not allowed' },
  UNAUTHENTICATED: { status: 401, when: 'the credentials are missing or could not be verified' },
  ORIGIN_REFUSED: { status: 403, when: "the browser's origin is not trusted" },
  AGENT_OWNED: { status: 403, when: 'the agent_id belongs to another principal' },
  /** For a heartbeat the status is 400. */
  AGENT_NOT_FOUND: { status: 404, when: 'no agent is registered under the id' },
  /** For a heartbeat the status is 400. */
  INSTANCE_NOT_FOUND: { status: 404, when: 'the agent has no registration with the instance_id or url' },
  INBOX_NOT_FOUND: {
    status: 404,
    when: 'the agent has no inbox: its card has neither a2a.pull nor a2a.offline "queue"',
  },
  METHOD_NOT_ALLOWED: { status: 405, when: 'the path does not support the method; Allow lists its methods' },
  AGENT_LIMIT: { status: 409, when: 'the maximum number of agents is registered' },
  /** `details` has the limit's name and its value. */
  INSTANCE_LIMIT: { status: 409, when: 'the agent has the maximum number of instances' },
  LEASE_LOST: { status: 409, when: 'the lease of the receipt has ended; another lease may have the request' },
  RUN_ENDED: { status: 409, when: 'the task of the receipt has ended, so it accepts no more events' },
  OFFSET_WRONG: { status: 409, when: 'offset is not the number of events that were accepted before' },
  EVENT_INVALID: { status: 400, when: 'an event is not a StreamResponse of A2A 1.0, or does not fit the task' },
  /** `details` has the limit's name and its value. */
  CALLER_AGENT_LIMIT: { status: 429, when: 'the caller owns the maximum number of agents' },
  BODY_TOO_LARGE: { status: 413, when: 'the body is larger than MAX_BODY_BYTES' },
  MEDIA_TYPE_UNSUPPORTED: { status: 415, when: 'the body is not application/json, or it is encoded' },
  /** `details` names the limit; `Retry-After` is the number of seconds to wait. */
  TOO_MANY_REQUESTS: { status: 429, when: 'a limit of the caller or of the server is reached' },
  INTERNAL: { status: 500, when: 'a failure of the server itself' },
  SHUTTING_DOWN: { status: 503, when: 'the server is shutting down' },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly when: string }>>

export type RegistryErrorCode = keyof typeof REGISTRY_ERRORS

/** An error for the client. The message names the wrong value and the allowed ones. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError'
  readonly code: RegistryErrorCode
  /** Data for programs, one object for each problem; often empty. */
  readonly details: readonly object[]

  constructor(code: RegistryErrorCode, message: string, details: readonly object[] = [], options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.details = details
  }

  get status(): number {
    return REGISTRY_ERRORS[this.code].status
  }
}
