import type { DocumentedResponse, DocumentedRoute } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

// Bodies are messages of A2A 1.0, which its specification describes; the gateway passes them on.

const failure = Type.Object({
  error: Type.Object({
    code: Type.Integer({ description: 'The HTTP status.' }),
    status: Type.String({ description: 'The name of the google.rpc.Code.' }),
    message: Type.String(),
    details: Type.Array(Type.Object({}), { description: 'One is a google.rpc.ErrorInfo with the reason.' }),
  }),
})

const FAILURES: Readonly<Record<string, string>> = {
  400: 'The request is invalid, or the agent refuses it; the reason in the details says more.',
  401: 'UNAUTHENTICATED: the credentials are missing or invalid.',
  403: 'FORBIDDEN: the policy does not permit the call.',
  404: 'AGENT_NOT_FOUND, TASK_NOT_FOUND or METHOD_NOT_FOUND.',
  413: 'REQUEST_TOO_LARGE, or a body of more than MAX_BODY_BYTES.',
  415: 'The body has a Content-Encoding.',
  429: 'AGENT_BUSY or LIMIT_EXCEEDED; Retry-After has the time to wait.',
  500: 'INVALID_AGENT_RESPONSE, RESPONSE_TOO_LARGE, or an internal error of the agent or the server.',
  503: 'AGENT_UNREACHABLE, BROKER_UNAVAILABLE or SHUTTING_DOWN.',
  504: 'AGENT_TIMEOUT.',
}

const failures: Readonly<Record<string, DocumentedResponse>> = Object.fromEntries(
  Object.entries(FAILURES).map(([status, description]) => [status, { description, schema: failure }]),
)

const PARAMETERS = {
  agent_id: Type.String({ description: 'The id of the agent.' }),
  task_id: Type.String({ description: 'The id of the task.' }),
  config_id: Type.String({ description: 'The id of the configuration.' }),
}

const TENANT = {
  tenant: Type.Optional(Type.String({ description: 'The value of `tenant` in the card of the agent.' })),
}
const PAGE = { pageSize: Type.Optional(Type.Integer()), pageToken: Type.Optional(Type.String()) }
const HISTORY = { historyLength: Type.Optional(Type.Integer({ description: 'The most messages of the history.' })) }

/** Returns a route whose answer is a message of this type. */
function route(name: string, summary: string, type: string, rest: Partial<DocumentedRoute> = {}): DocumentedRoute {
  const [method = '', path = ''] = name.split(' ')
  if (method !== 'GET' && method !== 'POST' && method !== 'DELETE') throw new TypeError(`${name}: no such method`)
  const named = Object.entries(PARAMETERS).filter(([parameter]) => path.includes(`{${parameter}}`))
  const streams = type === 'StreamResponse'
  return {
    method,
    path: `/a2a/{agent_id}${path}`,
    listener: 'shared',
    tag: 'A2A',
    summary,
    parameters: { agent_id: PARAMETERS.agent_id, ...Object.fromEntries(named) },
    ...(method === 'POST' ? {} : { query: Type.Object(TENANT) }),
    ...rest,
    responses: {
      200: {
        description: streams ? `Server-sent events; each is a ${type}.` : `A ${type}.`,
        ...(streams ? { mediaType: 'text/event-stream', schema: Type.String() } : { schema: Type.Object({}) }),
      },
      ...failures,
    },
  }
}

function body(description: string): Partial<DocumentedRoute> {
  return { body: { mediaType: 'application/json', schema: Type.Object({}), description } }
}

const LIST = Type.Object({
  ...TENANT,
  ...PAGE,
  ...HISTORY,
  contextId: Type.Optional(Type.String()),
  status: Type.Optional(Type.String({ description: 'A state, such as TASK_STATE_WORKING or working.' })),
  statusTimestampAfter: Type.Optional(Type.String({ description: 'A time, RFC 3339.' })),
  includeArtifacts: Type.Optional(Type.Boolean()),
})

const CONFIGS = '/tasks/{task_id}/pushNotificationConfigs'

/**
 * The HTTP+JSON binding of A2A 1.0, for an OpenAPI document. Each path may have a segment with the `tenant` after the
 * agent's id.
 */
export const REST_ROUTES: readonly DocumentedRoute[] = [
  route('POST /message:send', 'Sends a message to an agent.', 'SendMessageResponse', body('A SendMessageRequest.')),
  route(
    'POST /message:stream',
    'Sends a message and streams the task.',
    'StreamResponse',
    body('A SendMessageRequest.'),
  ),
  route('GET /tasks', 'Lists the tasks of an agent.', 'ListTasksResponse', { query: LIST }),
  route('GET /tasks/{task_id}', 'Shows a task.', 'Task', { query: Type.Object({ ...TENANT, ...HISTORY }) }),
  route('POST /tasks/{task_id}:cancel', 'Cancels a task.', 'Task'),
  route('GET /tasks/{task_id}:subscribe', 'Streams the updates of a task.', 'StreamResponse'),
  route('POST /tasks/{task_id}:subscribe', 'Streams the updates of a task.', 'StreamResponse'),
  route(
    `POST ${CONFIGS}`,
    'Adds a configuration of push notifications to a task.',
    'TaskPushNotificationConfig',
    body('A TaskPushNotificationConfig.'),
  ),
  route(`GET ${CONFIGS}`, 'Lists the configurations of a task.', 'ListTaskPushNotificationConfigsResponse', {
    query: Type.Object({ ...TENANT, ...PAGE }),
  }),
  route(`GET ${CONFIGS}/{config_id}`, 'Shows a configuration.', 'TaskPushNotificationConfig'),
  route(`DELETE ${CONFIGS}/{config_id}`, 'Deletes a configuration.', 'message without members'),
  route('GET /extendedAgentCard', 'Shows the extended card of an agent.', 'AgentCard'),
]
