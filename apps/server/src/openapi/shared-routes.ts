import type { CeRoute } from '@signalbox/connector-cloudevents'
import {
  answerSchema,
  CE_ROUTES,
  ErrorAnswerSchema,
  SecretSchema,
  SubscriptionBodySchema,
  SubscriptionSchema,
} from '@signalbox/connector-cloudevents'
import type { DocumentedRoute } from '@signalbox/management-api'
import { Type } from 'typebox'

import type { Config } from '../config/schema.ts'
import { A2A_REST_ROUTES } from './a2a-rest.ts'
import { AGENT_ROUTES } from './agents.ts'

/**
 * Returns the REST routes of the shared listener's connectors, for the OpenAPI document, without
 * JSON-RPC endpoints.
 */
export function sharedRoutes({ authentication, connectors, webhooks }: Config): readonly DocumentedRoute[] {
  const { a2a, ce, mcp } = connectors
  return [
    ...(a2a.enable ? AGENT_ROUTES : []),
    ...(a2a.enable && a2a.native === 'auto' ? A2A_REST_ROUTES : []),
    ...(ce.enable ? CLOUD_EVENTS_ROUTES : []),
    ...(ce.enable && webhooks.enable ? WEBHOOK_ROUTES : []),
    ...(mcp.enable ? MCP_ROUTES : []),
    ...(mcp.enable && authentication.enable && authentication.oauth.enable ? MCP_OAUTH_ROUTES : []),
  ]
}

const serverCard = Type.Object({
  $schema: Type.String(),
  name: Type.String(),
  version: Type.String(),
  description: Type.String(),
  title: Type.String(),
  websiteUrl: Type.Optional(Type.String()),
  remotes: Type.Array(
    Type.Object({
      type: Type.Literal('streamable-http'),
      url: Type.String({ description: 'The URL of the endpoint.' }),
      headers: Type.Optional(
        Type.Array(
          Type.Object({
            name: Type.Literal('Authorization'),
            description: Type.String(),
            isRequired: Type.Boolean(),
            isSecret: Type.Boolean(),
          }),
          { description: 'Present if a client needs a token that it cannot get through OAuth.' },
        ),
      ),
      supportedProtocolVersions: Type.Array(Type.String()),
    }),
  ),
})

const catalog = Type.Object({
  specVersion: Type.Literal('1.0'),
  entries: Type.Array(
    Type.Object({
      identifier: Type.String(),
      displayName: Type.String(),
      type: Type.Literal('application/mcp-server-card+json'),
      url: Type.String({ description: 'The URL of the card.' }),
    }),
  ),
})

const resourceMetadata = Type.Object({
  resource: Type.String({ description: 'The URL of the endpoint, which is the audience of its tokens.' }),
  authorization_servers: Type.Array(Type.String(), { description: 'The URLs of the authorization servers.' }),
  scopes_supported: Type.Array(Type.String()),
  bearer_methods_supported: Type.Array(Type.Literal('header')),
})

/** The documents about the MCP endpoint. The endpoint itself is JSON-RPC, which OpenAPI does not describe. */
export const MCP_ROUTES: readonly DocumentedRoute[] = [
  documentRoute('/mcp/server-card', 'The card of the MCP endpoint.', serverCard, 'application/mcp-server-card+json'),
  documentRoute('/.well-known/ai-catalog.json', 'The catalog of this host, which leads to the card.', catalog),
]

/** The documents for OAuth clients of the MCP endpoint (RFC 9728). */
export const MCP_OAUTH_ROUTES: readonly DocumentedRoute[] = ['', '/mcp'].map((suffix) => ({
  method: 'GET',
  path: `/.well-known/oauth-protected-resource${suffix}`,
  listener: 'shared',
  tag: 'MCP',
  summary: 'The authorization servers and scopes of the MCP endpoint.',
  isPublic: true,
  responses: { 200: { description: 'The metadata of the protected resource.', schema: resourceMetadata } },
}))

function documentRoute(
  path: string,
  summary: string,
  schema: typeof serverCard | typeof catalog,
  mediaType = 'application/json',
): DocumentedRoute {
  return {
    method: 'GET',
    path,
    listener: 'shared',
    tag: 'MCP',
    summary,
    isPublic: true,
    responses: {
      200: { description: 'The document, with an ETag.', mediaType, schema },
      304: { description: 'The document has not changed since the version in If-None-Match.' },
    },
  }
}

/** The routes below `/ce`. */
const CLOUD_EVENTS_ROUTES: readonly DocumentedRoute[] = CE_ROUTES.map(cloudEventsRoute)

function cloudEventsRoute({ name, method, summary, input: query, body, output: answer }: CeRoute): DocumentedRoute {
  const done: DocumentedRoute['responses'] =
    answer === undefined
      ? { 200: { description: 'A stream of CloudEvents.', mediaType: 'text/event-stream', schema: Type.String() } }
      : {
          [answer.status]: {
            description: 'Success, or with `is_error: true` a failure.',
            schema: answerSchema(answer.data),
          },
        }
  const route: DocumentedRoute = {
    method,
    path: `/ce/${name}`,
    listener: 'shared',
    tag: 'CloudEvents',
    summary,
    query,
    responses: {
      ...done,
      '4XX': { description: 'The request is invalid or not allowed.', schema: ErrorAnswerSchema },
      '5XX': { description: 'The request cannot be executed at the moment.', schema: ErrorAnswerSchema },
    },
  }
  if (body === 'ignored') return route
  const description = `A CloudEvent in structured or binary mode${body === 'events' ? ', or a batch' : ''}.`
  return { ...route, body: { mediaType: 'application/cloudevents+json', description } }
}

const COMMON = { listener: 'shared', tag: 'Webhooks' } as const

const REFUSALS: DocumentedRoute['responses'] = {
  '4XX': { description: 'The request is invalid or not allowed.', schema: ErrorAnswerSchema },
  '5XX': { description: 'The request cannot be executed at the moment.', schema: ErrorAnswerSchema },
}

const PATH = '/ce/subscriptions'

const ONE = {
  path: `${PATH}/{id}`,
  parameters: { id: Type.String({ description: 'The id of a subscription of the caller.' }) },
  responses: { 200: { description: 'The subscription.', schema: SubscriptionSchema }, ...REFUSALS },
}

/** The subscriptions of webhooks. */
const WEBHOOK_ROUTES: readonly DocumentedRoute[] = [
  {
    ...COMMON,
    method: 'POST',
    path: PATH,
    summary: 'Creates a webhook subscription, after the endpoint has agreed to it.',
    body: { mediaType: 'application/json', schema: SubscriptionBodySchema },
    responses: {
      201: { description: 'The subscription, with a generated secret.', schema: SubscriptionSchema },
      ...REFUSALS,
    },
  },
  {
    ...COMMON,
    method: 'GET',
    path: PATH,
    summary: 'Lists the webhook subscriptions of the caller.',
    responses: { 200: { description: 'The subscriptions.', schema: Type.Array(SubscriptionSchema) }, ...REFUSALS },
  },
  { ...COMMON, ...ONE, method: 'GET', summary: 'Shows a webhook subscription of the caller.' },
  {
    ...COMMON,
    ...ONE,
    method: 'POST',
    path: `${PATH}/{id}/secret`,
    summary: 'Replaces the secret of a webhook subscription. For a day, deliveries have signatures of both.',
    responses: { 200: { description: 'The new secret.', schema: SecretSchema }, ...REFUSALS },
  },
  { ...COMMON, ...ONE, method: 'DELETE', summary: 'Ends a webhook subscription of the caller.' },
]
