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
