import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import type { Revision } from './revision.ts'
import { findRevision, PROTOCOL_VERSIONS } from './revisions.ts'

const VERSION_HEADER = 'mcp-protocol-version'
const SESSION_HEADER = 'mcp-session-id'
const SESSION_ID = /^[\x21-\x7e]{1,256}$/

/** Returns a session id for a client that initializes. The server stores nothing about it. */
export function newSessionId(): string {
  return randomUUID()
}

/** The values of the MCP headers of a request; `undefined` if missing, not valid, or ignored. */
export interface ProtocolHeaders {
  readonly revision: Revision | undefined
  readonly sessionId: string | undefined
}

export function readProtocolHeaders(headers: IncomingHttpHeaders): ProtocolHeaders {
  const version = headers[VERSION_HEADER]
  const session = headers[SESSION_HEADER]
  const revision = typeof version === 'string' ? findRevision(version) : undefined
  // A stateless revision ignores session ids.
  const isSession = revision?.stateless !== true && typeof session === 'string' && SESSION_ID.test(session)
  return { revision, sessionId: isSession ? session : undefined }
}

/**
 * Checks the MCP headers of a request of a revision with a handshake.
 * @throws JsonRpcError -32600 for an unsupported version or a malformed session id
 */
export function checkProtocolHeaders(headers: IncomingHttpHeaders, read: ProtocolHeaders, id?: string): void {
  if (read.revision === undefined && headers[VERSION_HEADER] !== undefined) {
    throw new JsonRpcError(
      JSON_RPC_CODES.INVALID_REQUEST,
      `invalid request: MCP-Protocol-Version is not supported; supported are ${PROTOCOL_VERSIONS.join(', ')}`,
      { id, data: { supported: PROTOCOL_VERSIONS } },
    )
  }
  if (read.sessionId === undefined && headers[SESSION_HEADER] !== undefined) {
    throw new JsonRpcError(
      JSON_RPC_CODES.INVALID_REQUEST,
      'invalid request: MCP-Session-Id must be 1 to 256 visible ASCII characters',
      { id },
    )
  }
}
