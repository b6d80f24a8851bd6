/** The error codes that revision 2026-07-28 adds. No other revision uses them. */
export const MCP_CODES = {
  /** A header is missing or invalid, or differs from the body. */
  HEADER_MISMATCH: -32020,
  /** The request needs a capability that the client did not declare. */
  MISSING_CLIENT_CAPABILITY: -32021,
  /** The request names a revision that the server does not support. */
  UNSUPPORTED_PROTOCOL_VERSION: -32022,
} as const
