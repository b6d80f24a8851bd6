import { Buffer, isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'

import { shownText } from '@signalbox/broker-core/internal'
import type { JsonRpcRequest } from '@signalbox/http-kit'
import { JsonRpcError } from '@signalbox/http-kit'

import { MCP_CODES } from './codes.ts'

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
