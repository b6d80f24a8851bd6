import { EventMethods } from './events/event-methods.ts'
import { createEventTypes } from './events/event-types.ts'
import type { McpEvents } from './events/mcp-events.ts'
import { createMcpEvents } from './events/mcp-events.ts'
import type { EventsOptions } from './events/options.ts'
import { resolveEventsOptions } from './events/options.ts'

export type { EventTypeOptions } from './events/event-types.ts'
export { eventWebhookFormat } from './events/event-webhooks.ts'
export type { EventSubscription, EventSubscriptionInput, EventWebhooks } from './events/event-webhooks.ts'
export type {
  EncodedDelivery as EventDelivery,
  Verification as EventVerification,
  WebhookErrorCode as EventWebhookErrorCode,
  WebhookFailure as EventWebhookFailure,
  WebhookFormat as EventWebhookFormat,
} from '@signalbox/broker-core/ports'
export type { McpEvents } from './events/mcp-events.ts'
export type { EventsOptions } from './events/options.ts'
export { EVENTS_CODES } from './wire/events-profile.ts'
export type { EventsCodeFamily } from './wire/events-profile.ts'

/**
 * Returns the extension Events for the option `events` of the connector:
 * `mcpConnector(broker, { events: mcpEvents({ system }) })`.
 * @throws TypeError for an unknown option, another type, or no handle; RangeError for a value or an event type that is
 * not allowed
 */
export function mcpEvents(options: EventsOptions): McpEvents {
  const resolved = resolveEventsOptions(options)
  const types = createEventTypes(resolved.types)
  return createMcpEvents((environment) => new EventMethods(resolved, types, environment))
}
