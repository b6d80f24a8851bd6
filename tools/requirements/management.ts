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
    'a slow reader of a monitor loses messages, gets their count, and slows no sender; 1,000 monitors',
    'pings find dead peers; a shutdown ends monitors with a frame',
    'actions match the MCP tools and their arguments',
    'agents are listed with liveness and requests in flight; an Admin deregisters them',
    'a redrive sends dead letters back to their source, at least once and without loss',
    'statistics of channels, queues, events stores and clients, filtered and in pages; a snapshot of all',
    'memory for statistics is bounded, for any number of client names',
    'the OpenAPI 3.1 document has every route with its answers',
    'a bounded history of the node for plots: an hour in steps, a day in minutes',
    'channels are searched, sorted and paged, 100,000 of them without a long block of the event loop',
    'the policy in force decides test calls; every setting has its source; secrets are hidden',
    'pages of other sites cannot write, and tokens of browsers are never in an address',
    'operators sign in to the console at their identity provider, with PKCE and without a secret',
    'the nodes of a cluster are listed with their versions, and queues with their oldest message',
    'the clients that get the messages of a channel on a node are listed',
    'the traffic between callers, channels, agents, receivers and webhooks is counted within bounded memory',
  ]),
  ...section('AUDIT', RECORD, [
    'management actions: caller, action, object, address, outcome; never bodies or tokens',
    'channels created, deleted and purged, and denials of the policy',
    'messages only with AUDIT_MESSAGES',
    'failed authentications are combined by address and minute',
    'the log is filtered and paged, and removes entries past their age',
    'recording neither waits nor fails; excess entries are dropped and counted; closing writes all waiting entries',
  ]),
]
