import type { DocumentedResponse, DocumentedRoute } from '@signalbox/management-api'
import { AgentCardSchema, ListQuerySchema, REGISTRY_ERRORS, ShownCardSchema } from '@signalbox/registry'
import type { RegistryErrorCode } from '@signalbox/registry'
import type { TSchema } from 'typebox'
import { Type } from 'typebox'

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

function cardRoute(path: string, summary: string, schema: TSchema, more: Partial<DocumentedRoute>): DocumentedRoute {
  return {
    method: 'GET',
    path,
    listener: 'shared',
    tag: 'Agents',
    summary,
    isPublic: true,
    ...more,
    responses: {
      200: { description: 'The card. A client may cache it for a minute.', schema },
      304: { description: 'The card has not changed since the version in If-None-Match.' },
      ...more.responses,
    },
  }
}

const unknownAgent = Type.Object({ error: Type.Literal('AGENT_NOT_FOUND'), message: Type.String() })

const INTERFACES = Type.Array(
  Type.Object({
    url: Type.String(),
    protocolBinding: Type.String(),
    protocolVersion: Type.String(),
    tenant: Type.Optional(Type.String({ description: 'The value that requests must have as `tenant`.' })),
  }),
  { description: 'The addresses at the gateway, the preferred one first.' },
)

/** The card of an agent as the gateway shows it, unless the client asks for A2A 1.0. */
const gatewayCard = Type.Interface(
  [ShownCardSchema],
  {
    description: Type.String(),
    version: Type.String(),
    url: Type.String({ description: 'The address of A2A 0.3 at the gateway.' }),
    preferredTransport: Type.Literal('JSONRPC'),
    protocolVersion: Type.Literal('0.3.0'),
    supportedInterfaces: INTERFACES,
  },
  { description: 'An agent card. With `A2A-Version: 1.0` it has the members of A2A 1.0 and no other.' },
)

const keySet = Type.Object({
  keys: Type.Array(
    Type.Object({
      kty: Type.Literal('EC'),
      crv: Type.Literal('P-256'),
      x: Type.String(),
      y: Type.String(),
      kid: Type.String({ description: 'The thumbprint of the key (RFC 7638).' }),
      use: Type.Literal('sig'),
      alg: Type.Literal('ES256'),
    }),
  ),
})

/** The card of the platform, which is not a registered agent. */
const platformCard = Type.Object({
  name: Type.String(),
  description: Type.String(),
  version: Type.String(),
  url: Type.String({ description: 'The URL below which agents are called.' }),
  preferredTransport: Type.Literal('JSONRPC'),
  protocolVersion: Type.Literal('0.3.0'),
  protocolVersions: Type.Array(Type.String()),
  supportedInterfaces: INTERFACES,
  capabilities: Type.Object({ streaming: Type.Boolean() }),
  defaultInputModes: Type.Array(Type.String()),
  defaultOutputModes: Type.Array(Type.String()),
  skills: Type.Array(Type.Object({})),
})

/** The registry's routes and the public cards. */
export const AGENT_ROUTES: readonly DocumentedRoute[] = [
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
  cardRoute('/.well-known/agent-card.json', 'The card of Signalbox itself.', platformCard, {}),
  cardRoute('/a2a/{agent_id}/.well-known/agent-card.json', 'The card of an agent.', gatewayCard, {
    parameters: agentId,
    responses: { 404: { description: 'No agent is registered under the id.', schema: unknownAgent } },
  }),
  {
    method: 'GET',
    path: '/.well-known/jwks.json',
    listener: 'shared',
    tag: 'Agents',
    summary: 'The public keys that verify the signatures of cards.',
    isPublic: true,
    responses: {
      200: { description: 'A JSON Web Key Set. It is empty if cards are not signed.', schema: keySet },
      304: { description: 'The keys have not changed since the version in If-None-Match.' },
    },
  },
]
