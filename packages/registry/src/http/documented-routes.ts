import type { DocumentedResponse, DocumentedRoute } from '@signalbox/http-kit/internal'
import type { TSchema } from 'typebox'
import { Type } from 'typebox'

import { AgentCardSchema, ShownCardSchema } from '../card/agent-card.ts'
import { REGISTRY_ERRORS } from '../errors.ts'
import type { RegistryErrorCode } from '../errors.ts'
import { ListQuerySchema } from './agent-list.ts'

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
    { body: { mediaType: 'application/json', schema: AgentCardSchema } },
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
