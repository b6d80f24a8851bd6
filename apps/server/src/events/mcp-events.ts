import type { BrokerHandle } from '@signalbox/broker-core'
import type { EventsOptions, EventTypeOptions, EventWebhooks } from '@signalbox/connector-mcp'

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

/** Returns the options of the events of `/mcp`; `undefined` if they are turned off. */
export function mcpEvents(
  { connectors: { mcp } }: Config,
  { system, types, webhooks }: EventParts,
): EventsOptions | undefined {
  if (!mcp.events) return undefined
  return { system, types, codes: mcp.eventCodes, ...(webhooks === undefined ? {} : { webhooks }) }
}
