import type { BrokerHandle } from '@signalbox/broker-core'
import type { OptionTypes } from '@signalbox/broker-core/internal'
import { checkOptions } from '@signalbox/broker-core/internal'

import type { EventsCodeFamily } from '../wire/events-profile.ts'
import { EVENTS_CODE_FAMILIES, HEARTBEAT_MS } from '../wire/events-profile.ts'
import type { EventTypeOptions } from './event-types.ts'
import type { EventWebhooks } from './event-webhooks.ts'

/** Options of the extension Events. */
export interface EventsOptions {
  /** The handle for reserved channels, which `createBroker` returns. It reads the positions of events stores. */
  readonly system: BrokerHandle
  /** The types of operators, in addition to the three of every server. @default none */
  readonly types?: readonly EventTypeOptions[]
  /** The deliveries to webhooks. Only callers with credentials can subscribe. @default polls and streams only */
  readonly webhooks?: EventWebhooks
  /**
   * The error codes: those of the first sketch (`sketch`), those of SEP-3415 (`sep`), or `auto`: those of SEP-3415 for
   * requests that declare the extension.
   * @default 'auto'
   */
  readonly codes?: EventsCodeFamily
  /** The interval between heartbeats on a stream, in ms; 1 to 30000. @default 15000 */
  readonly heartbeatMs?: number
}

export type ResolvedEventsOptions = Required<Omit<EventsOptions, 'webhooks'>> & Pick<EventsOptions, 'webhooks'>

const OPTION_TYPES: OptionTypes<EventsOptions> = {
  system: 'object',
  types: 'any',
  webhooks: 'object',
  codes: 'text',
  heartbeatMs: 'number',
}

const MAX_HEARTBEAT_MS = 30_000

/** @throws TypeError for an unknown option, another type, or no handle; RangeError for a value that is not allowed */
export function resolveEventsOptions(options: EventsOptions): ResolvedEventsOptions {
  checkOptions('mcpEvents', options, OPTION_TYPES, ['system'])
  const { codes = 'auto', heartbeatMs = HEARTBEAT_MS, types = [] } = options
  if (!EVENTS_CODE_FAMILIES.includes(codes)) {
    throw new RangeError(`events.codes: ${codes}; allowed are ${EVENTS_CODE_FAMILIES.join(', ')}`)
  }
  if (!(heartbeatMs >= 1 && heartbeatMs <= MAX_HEARTBEAT_MS)) {
    throw new RangeError(`events.heartbeatMs: ${heartbeatMs}; allowed is a number from 1 to ${MAX_HEARTBEAT_MS}`)
  }
  return { ...options, types, codes, heartbeatMs }
}
