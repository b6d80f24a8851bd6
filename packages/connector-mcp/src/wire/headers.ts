import { Buffer, isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

import { shownText } from '@signalbox/broker-core/internal'
import type { JsonRpcRequest } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import { MCP_CODES } from './2026-07-28.ts'
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

/** The member of `params` that `Mcp-Name` repeats, by method. */
const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/cancel', 'taskId'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
])

/**
 * Checks the headers that repeat the method and the name of a request for intermediaries. A member of the body that
 * is not a string has no header to compare; the method rejects it.
 * @throws JsonRpcError -32020
 */
export function checkMirroredHeaders(headers: IncomingHttpHeaders, { method, params }: JsonRpcRequest): void {
  const methodHeader = headers['mcp-method']
  if (methodHeader !== method) throw headerMismatch('Mcp-Method', methodHeader, method)
  const member = NAMED_BY.get(method)
  const name = member === undefined ? undefined : params?.[member]
  if (typeof name !== 'string') return
  const nameHeader = headers['mcp-name']
  if (typeof nameHeader !== 'string' || decoded(nameHeader) !== name) {
    throw headerMismatch('Mcp-Name', nameHeader, name)
  }
}

const PLAIN = /^[\t\x20-\x7e]*$/
const ENCODED_START = '=?base64?'
const ENCODED_END = '?='
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** Returns the value of a header, which may be base64 of UTF-8; `undefined` if the value is not valid. */
function decoded(header: string): string | undefined {
  if (!header.startsWith(ENCODED_START) || !header.endsWith(ENCODED_END)) {
    return PLAIN.test(header) ? header : undefined
  }
  const base64 = header.slice(ENCODED_START.length, -ENCODED_END.length)
  if (!BASE64.test(base64)) return undefined
  const bytes = Buffer.from(base64, 'base64')
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

/** Returns the error for a header that is missing, invalid, or different from the body. */
export function headerMismatch(
  name: string,
  given: string | readonly string[] | undefined,
  body: string,
): JsonRpcError {
  const shown = given === undefined ? 'missing' : shownText(String(given))
  return new JsonRpcError(
    MCP_CODES.HEADER_MISMATCH,
    `header mismatch: ${name} is ${shown}; it must be ${shownText(body)}, the value in the body`,
  )
}

/** The media types that a client can read, by its Accept header. A POST request needs no Accept header. */
export interface AcceptedMediaTypes {
  /** `true` unless the client names event streams and no media type that JSON matches. */
  readonly json: boolean
  /** `true` if the client names `text/event-stream`. */
  readonly events: boolean
}

const JSON_ONLY: AcceptedMediaTypes = { json: true, events: false }
const BOTH: AcceptedMediaTypes = { json: true, events: true }

/** A cache of parsed headers: clients send few different ones, and the same with every request. */
const known = new Map<string, AcceptedMediaTypes>()
const MAX_KNOWN = 64

export function acceptedBy(header: string | undefined): AcceptedMediaTypes {
  if (header === undefined) return JSON_ONLY
  const before = known.get(header)
  if (before !== undefined) return before
  const accepted = readAccept(header)
  if (known.size < MAX_KNOWN && header.length < 256) known.set(header, accepted)
  return accepted
}

function readAccept(header: string): AcceptedMediaTypes {
  let json = false
  let events = false
  for (const part of header.split(',')) {
    const [range = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
    if (parameters.some((parameter) => /^q=0(?:\.0{0,3})?$/.test(parameter))) continue
    if (range === 'text/event-stream') events = true
    else if (range === 'application/json' || range === 'application/*' || range === '*/*') json = true
  }
  if (events) return json ? BOTH : { json: false, events: true }
  return JSON_ONLY
}
