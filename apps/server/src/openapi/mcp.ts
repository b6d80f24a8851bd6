import type { DocumentedRoute } from '@signalbox/management-api'
import { Type } from 'typebox'

const serverCard = Type.Object({
  $schema: Type.String(),
  name: Type.String(),
  version: Type.String(),
  description: Type.String(),
  title: Type.String(),
  remotes: Type.Array(
    Type.Object({
      type: Type.Literal('streamable-http'),
      url: Type.String({ description: 'The URL of the endpoint.' }),
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

/** The documents about the MCP endpoint. The endpoint itself is JSON-RPC, which OpenAPI does not describe. */
export const MCP_ROUTES: readonly DocumentedRoute[] = [
  documentRoute('/mcp/server-card', 'The card of the MCP endpoint.', serverCard),
  documentRoute('/.well-known/ai-catalog.json', 'The catalog of this host, which leads to the card.', catalog),
]

function documentRoute(path: string, summary: string, schema: typeof serverCard | typeof catalog): DocumentedRoute {
  return {
    method: 'GET',
    path,
    listener: 'shared',
    tag: 'MCP',
    summary,
    isPublic: true,
    responses: {
      200: { description: 'The document, with an ETag.', schema },
      304: { description: 'The document has not changed since the version in If-None-Match.' },
    },
  }
}
