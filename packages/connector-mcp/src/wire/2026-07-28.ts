import { JSON_RPC_CODES } from '@signalbox/http-kit'

import { EVENTS_METHODS } from './events-profile.ts'
import type { Revision } from './revision.ts'

/** The error codes that revision 2026-07-28 adds. No other revision uses them. */
export const MCP_CODES = {
  /** A header is missing or invalid, or differs from the body. */
  HEADER_MISMATCH: -32020,
  /** The request needs a capability that the client did not declare. */
  MISSING_CLIENT_CAPABILITY: -32021,
  /** The request names a revision that the server does not support. */
  UNSUPPORTED_PROTOCOL_VERSION: -32022,
} as const

/** Time for which clients may keep a list or the result of `server/discover`, in ms. */
const CACHE_MS = 300_000

const STATUS: ReadonlyMap<number, number> = new Map([
  [JSON_RPC_CODES.PARSE_ERROR, 400],
  [JSON_RPC_CODES.INVALID_REQUEST, 400],
  [JSON_RPC_CODES.METHOD_NOT_FOUND, 404],
  [JSON_RPC_CODES.AUTHENTICATION_FAILED, 401],
  [MCP_CODES.HEADER_MISMATCH, 400],
  [MCP_CODES.MISSING_CLIENT_CAPABILITY, 400],
  [MCP_CODES.UNSUPPORTED_PROTOCOL_VERSION, 400],
])

/** The revision without handshake and sessions: every request carries its version and the client's capabilities. */
export const REVISION_2026_07_28: Revision = {
  version: '2026-07-28',
  stateless: true,
  implementation: (info) => ({ ...info }),
  methods: new Set([
    'server/discover',
    'tools/list',
    'tools/call',
    'subscriptions/listen',
    'tasks/get',
    'tasks/update',
    'tasks/cancel',
    ...EVENTS_METHODS,
  ]),
  requestMethods: new Set([
    'completion/complete',
    'prompts/get',
    'prompts/list',
    'resources/list',
    'resources/read',
    'resources/templates/list',
    'server/discover',
    'subscriptions/listen',
    'tasks/cancel',
    'tasks/get',
    'tasks/update',
    'tools/call',
    'tools/list',
    ...EVENTS_METHODS,
  ]),
  invalidArguments: 'result',
  closingCancels: true,
  statusOf: (code, malformed) =>
    malformed && code === JSON_RPC_CODES.INVALID_PARAMS ? 400 : (STATUS.get(code) ?? 200),
  result: (members, serverInfo, meta = '', type = 'complete') =>
    `{"resultType":"${type}",${members}${members === '' ? '' : ','}"_meta":{"io.modelcontextprotocol/serverInfo":${serverInfo}${meta}}}`,
  cacheHints: (scope) => `,"ttlMs":${CACHE_MS},"cacheScope":"${scope}"`,
}

/** The member of `_meta` that relates a message on a stream to its `subscriptions/listen`, with a leading comma. */
export function subscriptionMeta(id: string): string {
  return `,"io.modelcontextprotocol/subscriptionId":${id}`
}

/**
 * Returns the first message on the stream of a `subscriptions/listen`: the notifications that the server will send.
 * They are those of tasks, because the tools of a server never change.
 * @param id The source text of the request's id
 * @param taskIds The tasks whose changes are sent; `undefined` if the client named none
 */
export function acknowledgement(id: string, taskIds?: readonly string[]): string {
  const notifications = JSON.stringify({ taskIds })
  return `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":${notifications},"_meta":${metaText(id)}}}`
}

/**
 * Returns the message on the stream of a `subscriptions/listen` about a change of a task.
 * @param members The members of the task as JSON text without the braces
 */
export function taskNotification(id: string, members: string): string {
  return `{"jsonrpc":"2.0","method":"notifications/tasks","params":{${members},"_meta":${metaText(id)}}}`
}

function metaText(id: string): string {
  return `{"io.modelcontextprotocol/subscriptionId":${id}}`
}
