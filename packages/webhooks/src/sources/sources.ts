import type { BrokerHandle, StoredEvent } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import { attributesOf, compileCesql, keepSubscribed, Pace, pauseAfter } from '@signalbox/broker-core/internal'

import type { WebhookMessageSource } from '@signalbox/broker-core/ports'
import { RUN_SOURCE } from '@signalbox/broker-core/ports'

import type { KnownSubscription } from '../subscription/stored-subscriptions.ts'
import type { SubscriptionRecord } from '../subscription/subscription-record.ts'
import { IterableSource } from './iterable-source.ts'
import type { Item, Source } from './source.ts'
import { BUFFERED_BYTES, BUFFERED_ITEMS, ItemBuffer } from './source.ts'

interface SourceOptions {
  /** The first entry of an events store. */
  readonly next: number
  readonly signal: AbortSignal
  /** Receives failures; the source continues after them. */
  readonly failed: (error: unknown) => void
  /** Called for each event that a full buffer drops. */
  readonly dropped: () => void
  /** Returns the source of a connector. */
  readonly sourceOf: (type: string) => WebhookMessageSource | undefined
}

/** Opens the source of a subscription. It ends when the signal is aborted. */
export function openSource(
  system: BrokerHandle,
  { id, record, cursor: { position } }: KnownSubscription,
  options: SourceOptions,
): Source {
  const { type, channel } = record
  if (type === RUN_SOURCE) {
    const source = options.sourceOf(type)
    if (source === undefined) throw new Error(`the server has no source ${type}`)
    const { account, notes = '', owner } = record
    return new IterableSource(source, { id, owner, account, channel, notes, position }, options)
  }
  if (type === 'queues') return new QueueSource(system, channel, options)
  return type === 'events' ? eventsSource(system, channel, options) : storeSource(system, channel, options)
}

/** The messages of a subscription to a channel, which is made again after an interruption. */
class SubscribedSource implements Source {
  readonly #buffer: ItemBuffer
  readonly #maxBytes: number
  readonly #subscribed: Promise<void>

  /** @param maxBytes The most bytes in one delivery */
  constructor(buffer: ItemBuffer, maxBytes: number, subscribed: Promise<void>) {
    this.#buffer = buffer
    this.#maxBytes = maxBytes
    this.#subscribed = subscribed
  }

  take(max: number): readonly Item[] | Promise<readonly Item[]> {
    return this.#buffer.take(max, this.#maxBytes)
  }

  settle(): undefined {}

  async keep(): Promise<boolean> {
    return true
  }

  async release(): Promise<void> {}

  async close(): Promise<void> {
    await this.#subscribed
  }
}

/**
 * The entries of an events store from a position on, in order. The store keeps the entries that are not read yet, so a
 * slow endpoint needs no memory.
 */
function storeSource(system: BrokerHandle, channel: string, { next, signal, failed }: SourceOptions): Source {
  const buffer = new ItemBuffer(BUFFERED_ITEMS, BUFFERED_BYTES, signal)
  let position = next
  const take = (message: StoredEvent): Promise<void> | undefined => {
    if (signal.aborted) return undefined
    // Lower than the last one if the channel was deleted and created again.
    position = message.sequence + 1
    // A deleted key has no message.
    if (message.tombstone) return undefined
    const { sequence } = message
    buffer.push({ message, sequence, receipt: '', name: String(sequence) })
    return buffer.full ? buffer.hasRoom() : undefined
  }
  const subscribe = () =>
    system.eventsStore.subscribe(channel, { from: 'sequence', sequence: position }, { signal }, take)
  return new SubscribedSource(buffer, BUFFERED_BYTES, keepSubscribed(subscribe, { signal, failed }))
}

/** The most events, and the most bytes, that wait for an endpoint. Events are not stored: later ones are dropped. */
const WAITING_ITEMS = 1_000
const WAITING_BYTES = 8 * 1024 * 1024

/** The most bytes in one delivery of events. */
const DELIVERY_BYTES = 1024 * 1024

/** The events of a channel while the subscription is served. An event is lost when its node stops. */
function eventsSource(system: BrokerHandle, channel: string, { signal, failed, dropped }: SourceOptions): Source {
  const buffer = new ItemBuffer(WAITING_ITEMS, WAITING_BYTES, signal)
  const subscribe = () =>
    system.events.subscribe(channel, { signal }, (message) => {
      if (buffer.full) dropped()
      else buffer.push({ message, sequence: 0, receipt: '', name: message.id })
    })
  return new SubscribedSource(buffer, DELIVERY_BYTES, keepSubscribed(subscribe, { signal, failed }))
}

/** The time of one receive, in ms. */
const WAIT_MS = 30_000

/** The lease of a received message, in ms: longer than an attempt with its wait for a place. */
const LEASE_MS = 60_000

/** The messages of a queue. Each is leased until the endpoint accepts it. */
class QueueSource implements Source {
  readonly #system: BrokerHandle
  readonly #channel: string
  readonly #signal: AbortSignal
  readonly #failed: (error: unknown) => void

  constructor(system: BrokerHandle, channel: string, { signal, failed }: SourceOptions) {
    this.#system = system
    this.#channel = channel
    this.#signal = signal
    this.#failed = failed
  }

  async take(max: number): Promise<readonly Item[]> {
    const signal = this.#signal
    for (;;) {
      signal.throwIfAborted()
      try {
        const options = { maxMessages: max, maxBytes: BUFFERED_BYTES, waitMs: WAIT_MS, leaseMs: LEASE_MS, signal }
        const deliveries = await this.#system.queues.receive(this.#channel, options)
        if (deliveries.length > 0) {
          return deliveries.map(({ message, receipt }) => ({ message, sequence: 0, receipt, name: message.id }))
        }
      } catch (error) {
        signal.throwIfAborted()
        this.#failed(error)
        await pauseAfter(1, { signal })
      }
    }
  }

  async settle(items: readonly Item[]): Promise<void> {
    await this.#system.queues.ack(receiptsOf(items))
  }

  async keep(items: readonly Item[], ms: number): Promise<boolean> {
    const { lost } = await this.#system.queues.extend(receiptsOf(items), ms + LEASE_MS)
    return lost.length === 0
  }

  async release(items: readonly Item[]): Promise<void> {
    await this.#system.queues.nack(receiptsOf(items), { delayMs: 0 })
  }

  async close(): Promise<void> {}
}

function receiptsOf(items: readonly Item[]): readonly string[] {
  return items.map(({ receipt }) => receipt)
}

/** Returns the sequence from which an events store is delivered. */
export async function firstSequence(
  system: BrokerHandle,
  channel: string,
  start: 'new' | 'first' | number,
): Promise<number> {
  if (typeof start === 'number') return start
  if (start === 'first') return 1
  const [latest] = await system.eventsStore.readLatest(channel, { maxMessages: 1 })
  if (latest !== undefined) return latest.sequence + 1
  try {
    const { eventsStore } = await system.channels.info('events_store', channel)
    return (eventsStore?.lastSequence ?? 0) + 1
  } catch (error) {
    if (isBrokerError(error, 'CHANNEL_NOT_FOUND')) return 1
    throw error
  }
}

/** All subscriptions share the time for filters: owners write them, and senders the texts that they read. */
const pace = new Pace()

/** Returns the items for which a subscription's filter is true. */
export async function wantedItems(filter: ItemFilter, items: readonly Item[]): Promise<readonly Item[]> {
  const wanted: Item[] = []
  for (const item of items) {
    while (pace.isOver) await pace.rest()
    if (pace.run(() => filter(item))) wanted.push(item)
  }
  return wanted
}

export type ItemFilter = (item: Item) => boolean

/** Compiles the filter of a subscription; undefined if it has none. */
export function filterOf({ type, channel, filter }: SubscriptionRecord): ItemFilter | undefined {
  if (filter === undefined || type === RUN_SOURCE) return undefined
  const expression = compileCesql(filter)
  return ({ message }) => {
    const { value, error } = expression.evaluate(attributesOf(type, channel, message))
    return error === undefined && value === true
  }
}
