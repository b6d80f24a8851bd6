import type { Refusal } from './admission/refusal.ts'
import { JSON_RPC_CODES } from './json-rpc/codes.ts'

export interface JsonRpcErrorOptions {
  /** Goes to the client as `error.data`. */
  readonly data?: unknown
  /** The source text of the request's id, where it could be read. */
  readonly id?: string | undefined
  /** The HTTP status where it does not follow from the code alone (J3). */
  readonly status?: number
  readonly cause?: unknown
}

/** A failure that goes to the client as a JSON-RPC error: the message tells a person what is wrong and what is allowed. */
export class JsonRpcError extends Error {
  override readonly name = 'JsonRpcError'
  /** One of {@link JSON_RPC_CODES}, or an agent's own. */
  readonly code: number
  readonly data?: unknown
  /** The source text of the request's id; absent where it could not be read, and the answer's id is then null. */
  readonly id?: string
  /** 403, 413 or 415 where J3 fixes one; otherwise the connector chooses by code. */
  readonly status?: number

  constructor(code: number, message: string, options: JsonRpcErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    if (options.data !== undefined) this.data = options.data
    if (options.id !== undefined) this.id = options.id
    if (options.status !== undefined) this.status = options.status
  }
}

/** A body that was read, and that a limit refuses because of what is in it. */
export class BodyRefused extends Error {
  override readonly name = 'BodyRefused'
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(refusal.message)
    this.refusal = refusal
  }
}

/** The caller's credentials are missing or could not be verified. The message is for logs; clients are not told why. */
export class AuthenticationError extends Error {
  override readonly name = 'AuthenticationError'
}

/** The one answer to every {@link AuthenticationError} on a JSON-RPC route (specification, "Authentication" 7). */
export function authenticationFailed(id?: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.AUTHENTICATION_FAILED, 'Authentication failed', { id })
}
