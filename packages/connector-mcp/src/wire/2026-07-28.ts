import { JSON_RPC_CODES } from '@signalbox/http-kit'

import { MCP_CODES } from './codes.ts'
import { EVENTS_METHODS } from './events-profile.ts'
import type { Revision } from './revision.ts'

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
