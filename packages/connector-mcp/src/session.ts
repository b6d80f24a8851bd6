import { randomUUID } from 'node:crypto'

import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import type { Revision } from './wire/revision.ts'
import { findRevision, LATEST_REVISION, PROTOCOL_VERSIONS } from './wire/revisions.ts'

const SESSION_ID = /^[\x21-\x7e]{1,256}$/

/** A session id for a client that initializes. Nothing is kept about it (M2). */
export function newSessionId(): string {
  return randomUUID()
}

export function isSessionId(header: string): boolean {
  return SESSION_ID.test(header)
}

/** @throws JsonRpcError -32600 for an id of the wrong form (M2) */
export function readSessionId(header: string | string[] | undefined, id?: string): string | undefined {
  if (header === undefined) return undefined
  if (typeof header === 'string' && isSessionId(header)) return header
  throw new JsonRpcError(
    JSON_RPC_CODES.INVALID_REQUEST,
    'invalid request: MCP-Session-Id must be 1 to 256 visible ASCII characters',
    { id },
  )
}

/** @throws JsonRpcError -32600 for a version that is not known (M1) */
export function readRevision(header: string | string[] | undefined, id?: string): Revision {
  if (header === undefined) return LATEST_REVISION
  const revision = typeof header === 'string' ? findRevision(header) : undefined
  if (revision !== undefined) return revision
  throw new JsonRpcError(
    JSON_RPC_CODES.INVALID_REQUEST,
    `invalid request: MCP-Protocol-Version is not supported; supported are ${PROTOCOL_VERSIONS.join(', ')}`,
    { id, data: { supported: PROTOCOL_VERSIONS } },
  )
}
