import type { DocumentedRoute } from '@signalbox/management-api'

import type { Config } from '../config/schema.ts'
import { AGENT_ROUTES } from '../openapi/agents.ts'
import { CLOUD_EVENTS_ROUTES } from '../openapi/cloud-events.ts'

/**
 * Returns the REST routes of the shared listener's connectors, for the OpenAPI document, without
 * JSON-RPC endpoints.
 */
export function sharedRoutes({ connectors }: Config): readonly DocumentedRoute[] {
  return [...(connectors.a2a.enable ? AGENT_ROUTES : []), ...(connectors.ce.enable ? CLOUD_EVENTS_ROUTES : [])]
}
