import type { IncomingHttpHeaders } from 'node:http'

import { shownText } from '@signalbox/broker-core/internal'
import type { JsonObject, JsonRpcMessage } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'

import { MCP_CODES } from './2026-07-28.ts'
import type { ClientCapabilities } from './capabilities.ts'
import { readCapabilities } from './capabilities.ts'
import { checkMirroredHeaders, headerMismatch } from './headers.ts'
import { STATELESS_REVISION, SUPPORTED_VERSIONS } from './revisions.ts'

/** The members of `_meta` in requests of revision 2026-07-28. */
const META = {
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  /** Optional. */
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
} as const

/** Returns the client's capabilities in the `_meta` of a request. */
export function capabilitiesIn(meta: JsonObject | undefined): ClientCapabilities {
  return readCapabilities(meta?.[META.clientCapabilities])
}

/** Returns `true` if a message names its own revision, which only messages of stateless revisions do. */
export function namesRevision(message: JsonRpcMessage): boolean {
  return message.kind !== 'response' && metaOf(message)?.[META.protocolVersion] !== undefined
}

/** Returns the `_meta` of a request or notification. */
export function metaOf({ params }: { readonly params: JsonObject | undefined }): JsonObject | undefined {
  const meta = params?.['_meta']
  return isJsonObject(meta) ? meta : undefined
}

/**
 * Checks a message of a stateless revision: its kind, the members of `_meta`, and the headers that repeat parts of
 * the body. Notifications have no required members.
 * @returns the `_meta` of a request
 * @throws JsonRpcError -32600, -32602, -32020 or -32022, each with HTTP status 400
 */
export function checkStateless(headers: IncomingHttpHeaders, message: JsonRpcMessage): JsonObject | undefined {
  if (message.kind === 'notification') return undefined
  if (message.kind === 'response') {
    throw new JsonRpcError(
      JSON_RPC_CODES.INVALID_REQUEST,
      'invalid request: this is a response; send requests and notifications',
    )
  }
  const meta = metaOf(message)
  checkVersion(headers, meta)
  if (!isJsonObject(meta?.[META.clientCapabilities])) {
    throw missing(META.clientCapabilities, 'an object, such as {}')
  }
  const info = meta[META.clientInfo]
  if (info !== undefined && !isImplementation(info)) {
    throw missing(META.clientInfo, 'an object with the strings name and version, or left out')
  }
  checkMirroredHeaders(headers, message)
  return meta
}

function isImplementation(info: unknown): boolean {
  return isJsonObject(info) && typeof info['name'] === 'string' && typeof info['version'] === 'string'
}

function checkVersion(headers: IncomingHttpHeaders, meta: JsonObject | undefined): void {
  const version = meta?.[META.protocolVersion]
  if (typeof version !== 'string') throw missing(META.protocolVersion, 'a string, such as "2026-07-28"')
  const header = headers['mcp-protocol-version']
  if (header !== version) throw headerMismatch('MCP-Protocol-Version', header, version)
  if (version !== STATELESS_REVISION.version) {
    throw new JsonRpcError(
      MCP_CODES.UNSUPPORTED_PROTOCOL_VERSION,
      `unsupported protocol version ${shownText(version)}; requests may name ${STATELESS_REVISION.version} in _meta; initialize negotiates the older versions`,
      { data: { supported: SUPPORTED_VERSIONS, requested: version } },
    )
  }
}

function missing(key: string, allowed: string): JsonRpcError {
  return new JsonRpcError(
    JSON_RPC_CODES.INVALID_PARAMS,
    `invalid params: _meta[${JSON.stringify(key)}] is missing or has the wrong type; it must be ${allowed}`,
    { status: 400 },
  )
}

const HEADERS = ['traceparent', 'tracestate'] as const

/** The members of `_meta` and their formats: W3C Trace Context, including later versions, and W3C Baggage. */
const MEMBERS: readonly (readonly [string, RegExp])[] = [
  ['traceparent', /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}(?:-[\x21-\x7e]{0,200})?$/],
  ['tracestate', /^[\x20-\x7e]{1,512}$/],
  ['baggage', /^[\x20-\x7e]{1,8192}$/],
]

/**
 * Returns the trace context of a request, to forward to agents: from `_meta` if it has one, otherwise the unchanged
 * trace headers (W3C Trace Context). Drops members of `_meta` that a header could not carry.
 * @param meta The `_meta` of a request, of any revision: clients send these members in the older ones too
 */
export function traceContext(
  headers: IncomingHttpHeaders,
  meta: JsonObject | undefined,
): Readonly<Record<string, string>> {
  const trace: Record<string, string> = {}
  if (meta !== undefined && MEMBERS.some(([name]) => meta[name] !== undefined)) {
    for (const [name, format] of MEMBERS) {
      const value = meta[name]
      if (typeof value === 'string' && format.test(value)) trace[name] = value
    }
    return trace
  }
  for (const name of HEADERS) {
    const value = headers[name]
    if (typeof value === 'string') trace[name] = value
  }
  return trace
}
