import { section } from './requirement.ts'

const RECORD = 'docs/decisions/0012-management.md'

export const MANAGEMENT = [
  ...section('MGMT', `specification, "Management API envelope"; ${RECORD}`, [
    'answers are {error, error_string, data}; business errors are 200',
    'without a valid token 401, in the envelope',
    'without the role 403: ReadOnly looks, ReadWrite acts, Admin removes agents',
    'until initialization finishes `api service not ready`, 200, data null; not the monitor',
    'the monitor at /api/monitor and /v1/stats/attach shows messages by its filters; stop and start pause it',
    'a WebSocket upgrade that fails is 500 in the envelope',
    'a slow reader of a monitor loses counted messages, is told, and slows nobody; 1,000 monitors',
    'pings find dead peers; a shutdown ends monitors politely',
    'actions do what the MCP tools do, with their arguments',
    'agents are listed with liveness and requests in flight; an Admin deregisters them',
    'a redrive sends dead letters back to their source, at least once and without loss',
    'statistics of channels, queues, events stores and clients, filtered and in pages; a snapshot of all',
    'memory for statistics is bounded, whatever callers call themselves',
    'the OpenAPI 3.1 document has every route, and says what they answer',
  ]),
  ...section('AUDIT', RECORD, [
    'management actions: who, what, on what, from where, outcome; never bodies or tokens',
    'channels created, deleted and purged, and what the policy denies',
    'messages only with AUDIT_MESSAGES',
    'failed authentications are gathered by address and minute',
    'the log is filtered and paged, and forgets what is past its age',
    'recording neither waits nor fails; what cannot be kept is dropped and counted; closing writes what waits',
  ]),
]
