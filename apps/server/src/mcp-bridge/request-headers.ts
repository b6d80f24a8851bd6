import { Buffer } from 'node:buffer'

import type { HostMessage } from './host-message.ts'

/** The state that `initialize` establishes in the older revisions. */
export interface Session {
  readonly version: string | undefined
  readonly id: string | undefined
}

/** The member of `params` that `Mcp-Name` repeats, by method. */
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/** Returns the headers that the transport of the message's revision needs over HTTP. */
export function requestHeaders(message: HostMessage, session: Session): Record<string, string> {
  const { revision, method, params } = message
  if (revision === undefined) {
    return {
      ...(session.version === undefined ? {} : { 'MCP-Protocol-Version': session.version }),
      ...(session.id === undefined ? {} : { 'MCP-Session-Id': session.id }),
    }
  }
  const member = method === undefined ? undefined : NAMED_BY[method]
  const name = member === undefined ? undefined : params?.[member]
  return {
    'MCP-Protocol-Version': headerValue(revision),
    ...(method === undefined ? {} : { 'Mcp-Method': headerValue(method) }),
    ...(typeof name === 'string' ? { 'Mcp-Name': headerValue(name) } : {}),
  }
}

/** Visible ASCII with blanks only inside, which intermediaries do not change. */
const PLAIN = /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/

/** Returns a value as a header can carry it: text that is not plain, or looks encoded, is encoded as base64. */
function headerValue(value: string): string {
  if (PLAIN.test(value) && !value.startsWith('=?base64?')) return value
  return `=?base64?${Buffer.from(value).toString('base64')}?=`
}
