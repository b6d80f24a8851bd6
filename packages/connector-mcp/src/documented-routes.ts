import type { DocumentedRoute } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

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
export const CARD_ROUTES: readonly DocumentedRoute[] = [
  documentRoute('/mcp/server-card', 'The card of the MCP endpoint.', serverCard, 'application/mcp-server-card+json'),
  documentRoute('/.well-known/ai-catalog.json', 'The catalog of this host, which leads to the card.', catalog),
]

/** The documents for OAuth clients of the MCP endpoint (RFC 9728). */
export const OAUTH_ROUTES: readonly DocumentedRoute[] = ['', '/mcp'].map((suffix) => ({
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
