import type { Refusal } from './admission/refusal.ts'

/** Optional parts of a {@link JsonRpcError}. */
export interface JsonRpcErrorOptions {
  /** Goes to the client as `error.data`. */
  readonly data?: unknown
  /** The source text of the request's id, if it could be read. */
  readonly id?: string | undefined
  /** The HTTP status, if the code alone does not determine it. */
  readonly status?: number
  readonly cause?: unknown
}

/** A failure that the client receives as a JSON-RPC error. The message names the problem and the allowed values. */
export class JsonRpcError extends Error {
  override readonly name = 'JsonRpcError'
  /** One of {@link JSON_RPC_CODES}, or a code of an agent. */
  readonly code: number
  readonly data?: unknown
  /** The source text of the request's id. Absent if it could not be read; the id of the answer is then `null`. */
  readonly id?: string
  /** The HTTP status, such as 403, 413 or 415. If absent, the connector derives it from the code. */
  readonly status?: number

  constructor(code: number, message: string, options: JsonRpcErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    if (options.data !== undefined) this.data = options.data
    if (options.id !== undefined) this.id = options.id
    if (options.status !== undefined) this.status = options.status
  }
}

/**
 * The error of work that a limit refuses after the request was admitted: a body because of its content, or a read because
 * of its size. Surfaces answer with the refusal.
 */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly refusal: Refusal

  constructor(refusal: Refusal) {
    super(refusal.message)
    this.refusal = refusal
  }
}

/** Missing or invalid credentials. The message is for logs. */
export class AuthenticationError extends Error {
  override readonly name = 'AuthenticationError'
  /** The reason for the client of an OAuth resource: one of a few texts, without values and quotes. @default none */
  readonly description: string | undefined

  constructor(message: string, { description, ...options }: ErrorOptions & { readonly description?: string } = {}) {
    super(message, options)
    this.description = description
  }
}

/** Returns the error for credentials that cannot be used, for a reason that the client may see too. */
export function unusable(description: string): AuthenticationError {
  return new AuthenticationError(description, { description })
}

/** Returns the answer to every {@link AuthenticationError} on a JSON-RPC route. */
export function authenticationFailed(id?: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.AUTHENTICATION_FAILED, 'Authentication failed', { id })
}

/**
 * The JSON-RPC error codes of all connectors. Each connector's own table maps its
 * errors to these codes.
 */
export const JSON_RPC_CODES = {
  /** Malformed JSON, bytes that are not UTF-8, or a content type other than application/json. */
  PARSE_ERROR: -32700,
  /** Invalid envelope, or an HTTP request around it that is not allowed: a batch, a wrong id, a limit, a header. */
  INVALID_REQUEST: -32600,
  METHOD_NOT_FOUND: -32601,
  /** Malformed params. On MCP also missing or invalid tool arguments. */
  INVALID_PARAMS: -32602,
  /** Server-side failure. */
  INTERNAL_ERROR: -32603,
  /** The agent did not respond within the timeout. */
  AGENT_TIMEOUT: -32001,
  /** No agent is registered under this agent_id. */
  AGENT_NOT_FOUND: -32002,
  /** The agent rejected the request, or could not be reached. */
  AGENT_UNAVAILABLE: -32003,
  /** The agent's answer is not a valid response. */
  INVALID_RESPONSE: -32004,
  /** The caller could not be authenticated. */
  AUTHENTICATION_FAILED: -32010,
  /** The caller is authenticated but not allowed to do this. */
  FORBIDDEN: -32011,
} as const

/** One of {@link JSON_RPC_CODES}. */
export type JsonRpcCode = (typeof JSON_RPC_CODES)[keyof typeof JSON_RPC_CODES]
