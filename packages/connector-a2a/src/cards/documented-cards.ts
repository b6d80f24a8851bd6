import type { DocumentedRoute } from '@signalbox/http-kit/internal'
import { ShownCardSchema } from '@signalbox/registry'
import type { TSchema } from 'typebox'
import { Type } from 'typebox'

const agentId = { agent_id: Type.String({ description: 'The id of the agent.' }) }

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

/** The public cards and keys, for an OpenAPI document. */
export const CARD_ROUTES: readonly DocumentedRoute[] = [
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
