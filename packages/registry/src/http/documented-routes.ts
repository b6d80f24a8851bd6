import type { DocumentedResponse, DocumentedRoute } from '@signalbox/http-kit/internal'
import type { TSchema } from 'typebox'
import { Type } from 'typebox'

import { AgentCardSchema, ShownCardSchema } from '../card/agent-card.ts'
import { REGISTRY_ERRORS } from '../errors.ts'
import type { RegistryErrorCode } from '../errors.ts'
import { ListQuerySchema } from './agent-list.ts'
import { EventsBodySchema, LeaseBodySchema, NackBodySchema } from './inbox-bodies.ts'

const failure = Type.Object({
  error: Type.String({ description: 'The error code.' }),
  message: Type.String({ description: 'The problem and the allowed values, for people.' }),
  details: Type.Array(Type.Object({}), { description: 'One object for each problem; often empty.' }),
})

const done = Type.Object({ ok: Type.Literal(true) })
const agentId = { agent_id: Type.String({ description: 'The id of the agent.' }) }
const registration = {
  instance_id: Type.Optional(Type.String({ description: 'The instance; if absent, see the route.' })),
  url: Type.Optional(Type.String({ description: 'The url of the registration that is meant.' })),
}
/** A registration by `agent_card_url`, and a card with `a2a.pull`, have no url. */
const RegistrationSchema = Type.Object(
  { ...AgentCardSchema.properties, url: Type.Optional(AgentCardSchema.properties.url) },
  { description: 'an agent card: a JSON object; url is required, except with agent_card_url or a2a.pull' },
)
const agentCall = { mediaType: 'application/json', schema: Type.Object({ ...agentId, ...registration }) }

const OF_EVERY_ROUTE = ['UNAUTHENTICATED', 'ORIGIN_REFUSED', 'INTERNAL'] as const
const OF_BODIES = ['BODY_INVALID', 'BODY_TOO_LARGE', 'MEDIA_TYPE_UNSUPPORTED'] as const

/** Returns the failures of a route by HTTP status. Every route has the 403 of the policy. */
function failures(path: string, codes: readonly RegistryErrorCode[]): Record<string, DocumentedResponse> {
  const texts = new Map<number, string[]>([[403, ['FORBIDDEN: the policy does not allow the caller to do this']]])
  for (const code of codes) {
    const { status: usual, when } = REGISTRY_ERRORS[code]
    // Specification, "Registry endpoints".
    const status = usual === 404 && path === '/agents/heartbeat' ? 400 : usual
    texts.set(status, [...(texts.get(status) ?? []), `${code}: ${when}`])
  }
  return Object.fromEntries(
    [...texts].map(([status, lines]) => [status, { description: lines.join('; '), schema: failure }]),
  )
}

function registryRoute(
  name: string,
  summary: string,
  answer: { readonly description: string; readonly schema: TSchema },
  codes: readonly RegistryErrorCode[],
  rest: Partial<DocumentedRoute> = {},
): DocumentedRoute {
  const [method = '', path = ''] = name.split(' ')
  if (method !== 'GET' && method !== 'POST' && method !== 'DELETE') throw new TypeError(`${name}: no such method`)
  return {
    method,
    path,
    listener: 'shared',
    tag: 'Agents',
    summary,
    ...(path.includes('{agent_id}') ? { parameters: agentId } : {}),
    ...rest,
    responses: { 200: answer, ...failures(path, [...OF_EVERY_ROUTE, ...codes]) },
  }
}

function jsonBody(schema: TSchema) {
  return { mediaType: 'application/json', schema }
}

const ONE_CARD = { description: 'The card.', schema: ShownCardSchema }
const DONE = { description: 'Done.', schema: done }
const OWNED = ['AGENT_NOT_FOUND', 'INSTANCE_NOT_FOUND', 'AGENT_OWNED', 'SHUTTING_DOWN'] as const

/** The routes of the registry, for an OpenAPI document. */
export const REGISTRY_ROUTES: readonly DocumentedRoute[] = [
  registryRoute(
    'GET /agents',
    'Lists agents in the order of their agent_id.',
    {
      description: 'The cards, at most 4 MiB; the Link header has the URL of the next page.',
      schema: Type.Array(ShownCardSchema),
    },
    ['PARAMETER_INVALID', 'SHUTTING_DOWN'],
    { query: ListQuerySchema },
  ),
  registryRoute('GET /agents/{agent_id}', 'Shows one agent.', ONE_CARD, ['AGENT_NOT_FOUND', 'SHUTTING_DOWN']),
  registryRoute(
    'POST /agents/register',
    'Registers an agent or an instance of it, or replaces its card.',
    ONE_CARD,
    [
      'CARD_INVALID',
      ...OF_BODIES,
      'AGENT_OWNED',
      'AGENT_LIMIT',
      'INSTANCE_LIMIT',
      'CALLER_AGENT_LIMIT',
      'SHUTTING_DOWN',
    ],
    { body: jsonBody(RegistrationSchema) },
  ),
  registryRoute(
    'POST /agents/heartbeat',
    'Reports that an agent, or an instance of it, is alive.',
    DONE,
    [...OF_BODIES, ...OWNED],
    {
      body: agentCall,
    },
  ),
  registryRoute('POST /agents/deregister', 'Removes an agent, or one instance of it.', DONE, [...OF_BODIES, ...OWNED], {
    body: agentCall,
  }),
  registryRoute(
    'DELETE /agents/{agent_id}',
    'Removes an agent, or one instance of it.',
    DONE,
    ['PARAMETER_INVALID', ...OWNED],
    {
      query: Type.Object(registration),
    },
  ),
]

const OF_INBOXES = [...OF_BODIES, 'AGENT_NOT_FOUND', 'INBOX_NOT_FOUND', 'AGENT_OWNED', 'SHUTTING_DOWN'] as const
const leaseUntil = Type.String({ format: 'date-time', description: 'The end of the lease.' })

const leasedItem = Type.Object({
  receipt: Type.String({ description: 'Names the lease in later calls.' }),
  task_id: Type.String(),
  context_id: Type.String(),
  attempt: Type.Integer({ minimum: 1, description: 'The number of this delivery of the request.' }),
  lease_until: leaseUntil,
  caller_id: Type.String({ description: 'The verified ClientID of the caller.' }),
  headers: Type.Object({}, { description: 'The headers that an agent with a url would get.' }),
  request: Type.Object({}, { description: 'A SendMessageRequest of A2A 1.0.' }),
})

/** The routes of inboxes, for an OpenAPI document. */
export const INBOX_ROUTES: readonly DocumentedRoute[] = [
  registryRoute(
    'POST /agents/{agent_id}/inbox/lease',
    "Leases requests from an agent's inbox, and reports that the agent is alive.",
    {
      description: 'The leased requests; empty if none came in time.',
      schema: Type.Object({ items: Type.Array(leasedItem) }),
    },
    OF_INBOXES,
    { body: jsonBody(LeaseBodySchema) },
  ),
  registryRoute(
    'POST /agents/{agent_id}/inbox/events',
    'Adds events to the task of a leased request, and extends the lease. An interrupted or terminal state ends the lease.',
    {
      description: 'The state of the lease.',
      schema: Type.Object({
        accepted: Type.Integer({
          minimum: 0,
          description: 'The number of events of this delivery that are accepted now.',
        }),
        cancel_requested: Type.Boolean({
          description: 'True if the task was canceled: stop, and send its last event.',
        }),
        lease_until: leaseUntil,
      }),
    },
    [...OF_INBOXES, 'LEASE_LOST', 'RUN_ENDED', 'OFFSET_WRONG', 'EVENT_INVALID'],
    { body: jsonBody(EventsBodySchema) },
  ),
  registryRoute(
    'POST /agents/{agent_id}/inbox/nack',
    'Returns a leased request for another delivery, or rejects it.',
    { description: 'Done.', schema: Type.Object({}) },
    [...OF_INBOXES, 'LEASE_LOST', 'RUN_ENDED'],
    { body: jsonBody(NackBodySchema) },
  ),
  registryRoute(
    'GET /agents/{agent_id}/inbox',
    "Shows the number of requests in an agent's inbox.",
    {
      description: 'The depth of the inbox.',
      schema: Type.Object({
        waiting: Type.Integer({ minimum: 0, description: 'Requests that wait.' }),
        in_flight: Type.Integer({ minimum: 0, description: 'Requests that are leased.' }),
        oldest_seconds: Type.Number({
          minimum: 0,
          description: 'The age of the oldest request that waits; 0 if none.',
        }),
      }),
    },
    ['AGENT_NOT_FOUND', 'INBOX_NOT_FOUND', 'AGENT_OWNED', 'SHUTTING_DOWN'],
  ),
]
