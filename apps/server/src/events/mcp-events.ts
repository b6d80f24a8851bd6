import type { BrokerHandle } from '@signalbox/broker-core'
import type { EventTypeOptions, EventWebhooks, McpEvents } from '@signalbox/connector-mcp/events'

import type { Config } from '../config/schema.ts'

export interface EventParts {
  /** The handle for reserved channels. */
  readonly system: BrokerHandle
  readonly types: readonly EventTypeOptions[]
  /** Absent if webhooks are turned off. */
  readonly webhooks: EventWebhooks | undefined
}

/**
 * Returns the event types of operators. The modules that read them are loaded only if there is a file.
 * @throws ServerError CONFIG_INVALID
 */
export async function mcpEventTypes({ connectors: { mcp } }: Config): Promise<readonly EventTypeOptions[]> {
  if (mcp.eventTypesFile === '') return []
  const { readEventTypes } = await import('./event-types-file.ts')
  return readEventTypes(mcp.eventTypesFile)
}

/** Returns the events of `/mcp`; `undefined` if they are turned off: their modules are not loaded then. */
export async function openMcpEvents(
  { connectors: { mcp } }: Config,
  { system, types, webhooks }: EventParts,
): Promise<McpEvents | undefined> {
  if (!mcp.events) return undefined
  const { mcpEvents } = await import('@signalbox/connector-mcp/events')
  return mcpEvents({ system, types, codes: mcp.eventCodes, ...(webhooks === undefined ? {} : { webhooks }) })
}
