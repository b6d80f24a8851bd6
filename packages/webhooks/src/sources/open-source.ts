import type { BrokerHandle } from '@signalbox/broker-core'

import type { SubscriptionRecord } from '../subscription/subscription-record.ts'
import { EventsSource } from './events-source.ts'
import { QueueSource } from './queue-source.ts'
import type { Source } from './source.ts'
import { StoreSource } from './store-source.ts'

interface SourceOptions {
  /** The first entry of an events store. */
  readonly next: number
  readonly signal: AbortSignal
  /** Receives failures; the source continues after them. */
  readonly failed: (error: unknown) => void
  /** Called for each event that a full buffer drops. */
  readonly dropped: () => void
}

/** Opens the source of a subscription. It ends when the signal is aborted. */
export function openSource(
  system: BrokerHandle,
  { type, channel }: SubscriptionRecord,
  { next, signal, failed, dropped }: SourceOptions,
): Source {
  if (type === 'queues') return new QueueSource(system, channel, { signal, failed })
  if (type === 'events') return new EventsSource(system, channel, { signal, failed, dropped })
  return new StoreSource(system, channel, next, { signal, failed })
}
