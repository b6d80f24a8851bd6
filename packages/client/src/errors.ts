/** The errors that the client itself reports. The other codes are the server's. */
export const CLIENT_ERRORS = {
  ARGUMENT_INVALID: 'an argument of a function of the client is invalid',
  AGENT_ERROR: 'the agent, or the gateway, answered with an error that has no name; `details.code` is its number',
  CANCELED: 'a caller canceled the task of an agent: the reason of the signal of its handler',
  CLOSED: 'the client is closed',
  DATA_INVALID: 'the data does not match the schema; `problems` lists each difference',
  LEASE_LOST: 'the lease of a message or request ended before it was settled',
  NOT_FOUND: 'the server has no such path: its connector is off, or no Signalbox server is at the URL',
  REQUEST_REJECTED: 'the responder rejected the command or query',
  RESPONSE_INVALID: 'the answer has another form than answers of Signalbox',
  RUNTIME_UNSUPPORTED: 'Node is older than 20.3, or the browser than 2024',
  TIMEOUT: 'the server did not answer in time',
  UNREACHABLE: 'no connection to the server, or it broke before the answer',
} as const

/** The code of an error that the client itself reports. */
export type ClientErrorCode = keyof typeof CLIENT_ERRORS

/** One invalid part of a call or of data. */
export interface Problem {
  /** The parameter, argument or field; the path in the data, joined by dots. */
  readonly name?: string | undefined
  readonly given?: string | undefined
  /** The allowed values, or the reason. */
  readonly allowed: string
}

export interface SignalboxErrorInit {
  readonly status?: number | undefined
  readonly problems?: readonly Problem[] | undefined
  readonly details?: Readonly<Record<string, unknown>> | undefined
  readonly retryable?: boolean | undefined
  readonly retryAfterMs?: number | undefined
  readonly cause?: unknown
}

/** A failed call. Compare `code`; the message is for people. */
export class SignalboxError extends Error {
  override readonly name = 'SignalboxError'
  /** A {@link ClientErrorCode}, or a code of the server. */
  readonly code: string
  /** The HTTP status of the answer; `undefined` without an answer. */
  readonly status: number | undefined
  /** Each invalid part of the call or of its data. */
  readonly problems: readonly Problem[]
  /** Further fields of the error, such as `limit` of `TOO_MANY_REQUESTS`. */
  readonly details: Readonly<Record<string, unknown>>
  /** `true` if repeating the call is safe, and may succeed. The client has then used up its own retries. */
  readonly retryable: boolean
  /** The time that the server asks to wait before a repeat, in ms. */
  readonly retryAfterMs: number | undefined

  constructor(code: string, message: string, init: SignalboxErrorInit = {}) {
    super(message, init.cause === undefined ? undefined : { cause: init.cause })
    this.code = code
    this.status = init.status
    this.problems = init.problems ?? []
    this.details = init.details ?? {}
    this.retryable = init.retryable ?? false
    this.retryAfterMs = init.retryAfterMs
  }
}

/** Returns the error for an argument with a value that is not allowed. */
export function argumentError(name: string, given: unknown, allowed: string): SignalboxError {
  const shown = typeof given === 'string' ? JSON.stringify(given) : String(given)
  return new SignalboxError('ARGUMENT_INVALID', `${name} is ${shown}; it must be ${allowed}`, {
    problems: [{ name, given: shown, allowed }],
  })
}

/** An error of a responder's handler: the reason is sent to the requester. */
export class Reject extends Error {
  override readonly name = 'Reject'
}
