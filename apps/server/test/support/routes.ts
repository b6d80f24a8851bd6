import { documentedA2aRoutes } from '@signalbox/connector-a2a'
import { CE_ROUTES } from '@signalbox/connector-cloudevents'
import { MANAGEMENT_ROUTES } from '@signalbox/management-api'
import type { DocumentedRoute } from '@signalbox/management-api'

/** One of the product's routes, with a request to it that succeeds when its caller is let in. */
export interface ProbedRoute {
  /** `POST /mcp` */
  readonly name: string
  readonly listener: 'shared' | 'management'
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** What must be done first, by the agent's owner, so that the request can succeed. */
  readonly needs?: 'a registered agent'
  /** `true` for a page for people, which the OpenAPI document does not have. */
  readonly page?: boolean
}

const JSON_BODY = { 'content-type': 'application/json' }
const CARD = JSON.stringify({ agent_id: 'probe', name: 'Probe', url: 'http://127.0.0.1:9/' })
const PROBE = '{"agent_id":"probe"}'

function rpc(method: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: {} })
}

/** Its query makes it succeed, or fail for another reason than its caller. */
function ceRoute({ name, method }: (typeof CE_ROUTES)[number]): ProbedRoute {
  const query = {
    'queue/ack': 'receipt=x',
    'queue/nack': 'receipt=x',
    'queue/extend': 'receipt=x&visibility_seconds=1',
    'queue/receive': 'channel=probe&wait_timeout=0',
    'send/response': 'request_id=x',
    'send/command': 'channel=probe&timeout=1',
    'send/query': 'channel=probe&timeout=1',
  }[name]
  return {
    name: `${method} /ce/${name}`,
    listener: 'shared',
    method,
    path: `/ce/${name}?${query ?? 'channel=probe'}`,
    ...(method === 'POST'
      ? {
          headers: { 'content-type': 'application/cloudevents+json' },
          body: '{"specversion":"1.0","id":"1","source":"/probe","type":"probe"}',
        }
      : {}),
  }
}

function shared(name: string, rest: Partial<ProbedRoute> = {}): ProbedRoute {
  const [method = '', path = ''] = name.split(' ')
  return { name, listener: 'shared', method, path: path.replace('{agent_id}', 'probe'), ...rest }
}

function management(name: string, rest: Partial<ProbedRoute> = {}): ProbedRoute {
  return { ...shared(name, rest), listener: 'management' }
}

/** A body with which the action succeeds, or fails for another reason than its caller. */
function actionBody(action: string): object {
  if (action === 'deregister_agent') return { agent_id: 'probe' }
  const channel = 'probe'
  if (/^(create|delete)_channel$/.test(action)) return { channel, type: 'queues' }
  if (/^send_(command|query)$/.test(action)) return { channel, body: 'x', timeout_seconds: 1 }
  if (action === 'receive_queue_messages') return { channel, wait_timeout_seconds: 1 }
  return /^(send|publish)_/.test(action) ? { channel, body: 'x' } : { channel }
}

/** From the list that the OpenAPI document is made of, which has every route of the listener. */
function operatorRoute({ method, path }: DocumentedRoute): ProbedRoute {
  const name = `${method} ${path}`
  if (method === 'GET') return management(name)
  return management(name, { headers: JSON_BODY, body: JSON.stringify(actionBody(path.replace('/api/actions/', ''))) })
}

/** The HTTP+JSON binding of A2A, from the list that the OpenAPI document is made of. */
function restRoute({ method, path }: DocumentedRoute): ProbedRoute {
  const probed = shared(`${method} ${path}`, { needs: 'a registered agent' })
  const named = { ...probed, path: probed.path.replaceAll(/\{\w+\}/g, 'probe') }
  return method === 'POST' ? { ...named, headers: JSON_BODY, body: '{}' } : named
}

const REST_ROUTES = (await documentedA2aRoutes({})).filter(({ tag }) => tag === 'A2A')

const OPERATOR_ROUTES = MANAGEMENT_ROUTES.filter(({ listener }) => listener === 'management').map(operatorRoute)

/** Every route of both listeners. Those of the management listener follow from its declarations; add others here and to the table in docs/reference/http.md. */
export const PROBED_ROUTES: readonly ProbedRoute[] = [
  shared('GET /ping'),
  shared('GET /health'),
  shared('GET /ready'),
  shared('GET /.well-known/agent-card.json'),
  shared('GET /a2a/{agent_id}/.well-known/agent-card.json', { needs: 'a registered agent' }),
  shared('GET /.well-known/jwks.json'),
  shared('POST /mcp', { headers: JSON_BODY, body: rpc('tools/list') }),
  shared('GET /mcp', { headers: { accept: 'text/event-stream' } }),
  shared('DELETE /mcp'),
  shared('GET /mcp/server-card'),
  shared('GET /.well-known/ai-catalog.json'),
  shared('POST /a2a/{agent_id}', { headers: JSON_BODY, body: rpc('message/send'), needs: 'a registered agent' }),
  shared('POST /a2a/{agent_id}/v0.3', { headers: JSON_BODY, body: rpc('message/send'), needs: 'a registered agent' }),
  shared('GET /a2a/{agent_id}'),
  shared('GET /a2a/{agent_id}/stream', { needs: 'a registered agent' }),
  ...REST_ROUTES.map(restRoute),
  shared('GET /agents'),
  shared('GET /agents/{agent_id}', { needs: 'a registered agent' }),
  shared('POST /agents/register', { headers: JSON_BODY, body: CARD, needs: 'a registered agent' }),
  shared('POST /agents/heartbeat', { headers: JSON_BODY, body: PROBE, needs: 'a registered agent' }),
  shared('POST /agents/deregister', { headers: JSON_BODY, body: PROBE, needs: 'a registered agent' }),
  shared('DELETE /agents/{agent_id}', { needs: 'a registered agent' }),
  shared('GET /agents/{agent_id}/inbox', { needs: 'a registered agent' }),
  shared('POST /agents/{agent_id}/inbox/lease', { headers: JSON_BODY, body: '{}', needs: 'a registered agent' }),
  shared('POST /agents/{agent_id}/inbox/events', { headers: JSON_BODY, body: '{}', needs: 'a registered agent' }),
  shared('POST /agents/{agent_id}/inbox/nack', { headers: JSON_BODY, body: '{}', needs: 'a registered agent' }),
  ...CE_ROUTES.map(ceRoute),
  shared('GET /unknown'),
  ...OPERATOR_ROUTES,
  management('GET /console/', { page: true }),
  management('GET /unknown'),
]

/** The routes of a server with webhooks. */
export const WEBHOOK_ROUTES: readonly ProbedRoute[] = [
  shared('GET /ce/subscriptions'),
  shared('POST /ce/subscriptions', { headers: JSON_BODY, body: '{"sink":"http://127.0.0.1:9/"}' }),
  ...['GET', 'DELETE'].map((method) => shared(`${method} /ce/subscriptions/{id}`, { path: '/ce/subscriptions/probe' })),
  shared('POST /ce/subscriptions/{id}/secret', { path: '/ce/subscriptions/probe/secret' }),
]

/** Registers the agent that routes need; only its owner may do so again. */
export const REGISTER: ProbedRoute = shared('POST /agents/register', { headers: JSON_BODY, body: CARD })
