/**
 * Every JSON-RPC error code that the connectors answer with (specification, "JSON-RPC codes"; -32011 is S4). When each
 * is raised on which connector stands in that connector's own table.
 */
export const JSON_RPC_CODES = {
  /** Malformed JSON, bytes that are not UTF-8, or a content type other than application/json. */
  PARSE_ERROR: -32700,
  /** The envelope breaks the rules (J1, J2, J4), or the HTTP request around it does (J3, S6). */
  INVALID_REQUEST: -32600,
  METHOD_NOT_FOUND: -32601,
  /** Malformed params; on MCP also missing or invalid tool arguments (M7). */
  INVALID_PARAMS: -32602,
  /** Server-side failure. */
  INTERNAL_ERROR: -32603,
  /** The agent did not respond within the timeout. */
  AGENT_TIMEOUT: -32001,
  /** No agent is registered under this agent_id. */
  AGENT_NOT_FOUND: -32002,
  /** The agent rejected the request, or could not be reached. */
  AGENT_UNAVAILABLE: -32003,
  /** What the agent answered is not a valid response. */
  INVALID_RESPONSE: -32004,
  /** The caller could not be authenticated. */
  AUTHENTICATION_FAILED: -32010,
  /** The caller is known and may not do this (S4). */
  FORBIDDEN: -32011,
} as const

export type JsonRpcCode = (typeof JSON_RPC_CODES)[keyof typeof JSON_RPC_CODES]
