import type { DocumentedRoute } from '@signalbox/management-api'

import type { Config } from '../config/schema.ts'
import { A2A_REST_ROUTES } from '../openapi/a2a-rest.ts'
import { AGENT_ROUTES } from '../openapi/agents.ts'
import { CLOUD_EVENTS_ROUTES } from '../openapi/cloud-events.ts'
import { WEBHOOK_ROUTES } from '../openapi/webhooks.ts'
import { MCP_OAUTH_ROUTES, MCP_ROUTES } from '../openapi/mcp.ts'

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
