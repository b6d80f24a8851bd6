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

/** Returns the options of the events of `/mcp`; `undefined` if they are turned off. */
export function mcpEvents(
  { connectors: { mcp } }: Config,
  { system, types, webhooks }: EventParts,
): EventsOptions | undefined {
  if (!mcp.events) return undefined
  return { system, types, codes: mcp.eventCodes, ...(webhooks === undefined ? {} : { webhooks }) }
}
