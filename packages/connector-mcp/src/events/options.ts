import type { BrokerHandle } from '@signalbox/broker-core'
import { checkParts } from '@signalbox/broker-core/internal'
import type { OptionRules, Resolved } from '@signalbox/http-kit/internal'
import { resolveOptions } from '@signalbox/http-kit/internal'

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
  readonly webhooks?: EventWebhooks | undefined
  /**
   * The error codes: those of the first sketch (`sketch`), those of SEP-3415 (`sep`), or `auto`: those of SEP-3415 for
   * requests that declare the extension.
   * @default 'auto'
   */
  readonly codes?: EventsCodeFamily
  /** The interval between heartbeats on a stream, in ms; 1 to 30000. @default 15000 */
  readonly heartbeatMs?: number
}

const MAX_HEARTBEAT_MS = 30_000

const NO_TYPES: readonly EventTypeOptions[] = []

const OPTIONS = {
  system: { type: 'object' },
  types: { type: 'any', default: NO_TYPES },
  webhooks: { type: 'object' },
  codes: { type: 'text', default: 'auto' },
  heartbeatMs: { type: 'number', default: HEARTBEAT_MS, min: 1, max: MAX_HEARTBEAT_MS },
} as const satisfies OptionRules<EventsOptions>

export interface ResolvedEventsOptions extends Omit<Resolved<EventsOptions, typeof OPTIONS>, 'system'> {
  readonly system: BrokerHandle
}

/** @throws TypeError for an unknown option, another type, or no handle; RangeError for a value that is not allowed */
export function resolveEventsOptions(options: EventsOptions): ResolvedEventsOptions {
  checkParts('mcpEvents', options, ['system'])
  const resolved = { ...resolveOptions('mcpEvents', options, OPTIONS), system: options.system }
  if (EVENTS_CODE_FAMILIES.includes(resolved.codes)) return resolved
  throw new RangeError(`events.codes: ${resolved.codes}; allowed are ${EVENTS_CODE_FAMILIES.join(', ')}`)
}
