import type {
  BrokerError,
  NackOptions,
  PeekOptions,
  QueueDelivery,
  QueueEngine,
  QueueListener,
  QueueMessage,
  QueueSend,
  ReceiveOptions,
  SendResult,
  SettingsTable,
  SettleResult,
} from '@signalbox/broker-core/engine'
import { maxAgeMsOf, unavailable } from '@signalbox/broker-core/engine'
import { SettledReceipts } from '@signalbox/broker-core/internal'

import { setImmediate as nextTick } from 'node:timers/promises'

import type { ChannelRegistry } from '../channel-registry.ts'
import { DELAYED } from '../store/damage.ts'
import type { QueueRow } from '../store/message-rows.ts'
import { queueRow, sentMessage, unreadMessage } from '../store/message-rows.ts'
import type { Store } from '../store/store.ts'
import type { PlacedMessage } from '../writer/operations.ts'
import { Grouping } from './grouping.ts'
import { HeldHeads } from './held-heads.ts'
import type { Lease } from './leases.ts'
import { Leases } from './leases.ts'
import { QueueClock } from './queue-clock.ts'
import { AgedMessages, oldestWaiting, peekQueue, purgeQueue } from './queue-contents.ts'
import { QueueReader, SMALL_BYTES } from './queue-reader.ts'
import { Queue } from './queue.ts'
import { LeaseSettlement } from './settlement.ts'
import { WaitingReceivers } from './waiting-receivers.ts'

/** The queues of the embedded engine. Messages are on disk; data for delivery is in memory. */
export class EmbeddedQueues implements QueueEngine {
  readonly #store: Store
  readonly #registry: ChannelRegistry
  readonly #settings: SettingsTable
  readonly #now: () => number
  readonly #aged: AgedMessages
  readonly #reader: QueueReader
  readonly #grouping: Grouping
  readonly #heldHeads: HeldHeads<Queue>
  readonly #leases: Leases<Queue>
  readonly #settlement: LeaseSettlement
  readonly #clock: QueueClock
  readonly #receivers: WaitingReceivers
  readonly #queues = new Map<string, Queue>()
  readonly #listeners: QueueListener[] = []
  #interrupts = 0
  #closed = false

  constructor(store: Store, registry: ChannelRegistry, settings: SettingsTable, now: () => number) {
    this.#store = store
    this.#registry = registry
    this.#settings = settings
    this.#now = now
    this.#reader = new QueueReader(store)
    this.#aged = new AgedMessages(this.#reader)
    this.#grouping = new Grouping(store, this.#reader, registry, settings, (name) => this.#regrouped(name))
    this.#heldHeads = new HeldHeads<Queue>(now, (queue, entries) =>
      this.#settlement.returnHeld(queue, queue.endBackOff(entries)),
    )
    this.#receivers = new WaitingReceivers(registry)
    this.#leases = new Leases<Queue>((leases) => this.#settlement.lapse(leases))
    this.#settlement = new LeaseSettlement({
      registry,
      settings,
      store,
      leases: this.#leases,
      settled: new SettledReceipts(() => performance.now()),
      now,
      arrived: (channel, channelId, sequence) => this.#arrived([{ channel, channelId, sequence }]),
      serve: (queue) => this.#receivers.serveSoon(queue),
      delayed: (dueAt) => this.#clock.note(dueAt, 0),
      expire: (queue, sequences) => this.#expire(queue, sequences),
    })
    this.#clock = new QueueClock(store, this.#reader, now, {
      arrived: (messages) => this.#arrived(messages),
      expired: (messages) => this.#expired(messages),
      mayAge: () => settings.uses('retention'),
      aged: (now) => this.#expireAged(now),
    })
  }

  start(): void {
    this.#grouping.start()
    this.#clock.start()
  }

  /** Applies changed settings to the messages that wait. */
  settingsChanged(): void {
    this.#aged.forget()
    this.#clock.settingsChanged()
  }

  /** Handles a queue whose messages are delivered in another way from now on. */
  #regrouped(name: string): void {
    const queue = this.#queues.get(name)
    if (queue) this.#receivers.serveSoon(queue)
  }

  // ── Sending ──

  async send(channel: string, message: QueueSend): Promise<SendResult> {
    const [result] = await this.sendBatch(channel, [message])
    if (!result) throw unavailable('the writer gave no result')
    return result
  }

  sendBatch(channel: string, messages: readonly QueueSend[]): Promise<readonly SendResult[]> {
    if (messages.length === 0) return Promise.resolve([])
    const refusal = this.#refusal(channel, messages)
    if (refusal) return Promise.reject(refusal)
    const now = this.#now()
    let bytes = 0
    const stored = messages.map((message) => {
      const row = queueRow(message, now)
      bytes += row.size
      return row
    })
    return this.#registry.creating('queues', channel, () =>
      this.#store.submit('send', { kind: 'send', channel, now, messages: stored }, bytes, (result) => {
        const { channelId, sequences, duplicates } = result
        return messages.map((message, i): SendResult => {
          const sequence = sequences[i] ?? 0
          const firstId = duplicates?.[i]
          if (firstId !== undefined) return { id: firstId, sequence, duplicate: true }
          const row = stored[i]
          if (row) this.#stored(channel, channelId, sequence, message, row)
          return { id: message.id, sequence, duplicate: false }
        })
      }),
    )
  }

  #refusal(channel: string, messages: readonly QueueSend[]): BrokerError | undefined {
    const { damage } = this.#store
    const damaged = damage.refusal('queues', channel)
    return damaged ?? (messages.some(({ delayMs }) => delayMs > 0) ? damage.partRefusal(DELAYED) : undefined)
  }

  /**
   * Handles a message that is on disk: adds it to the queue's memory if the queue has receivers, and records its due
   * time and expiry.
   */
  #stored(name: string, channelId: number, sequence: number, message: QueueSend, row: QueueRow): void {
    this.#clock.note(row.dueAt, row.expiresAt)
    if (row.dueAt > 0) return
    const queue = this.#queues.get(name)
    if (!queue || queue.channel?.id !== channelId) return
    const kept = row.size <= SMALL_BYTES || queue.waiters.size > 0
    queue.arrived(sentMessage(message, row, { channel: name, sequence, kept }), message.tags)
    this.#receivers.serveSoon(queue)
  }

  #arrived(messages: readonly PlacedMessage[]): void {
    for (const { channel, channelId, sequence } of messages) {
      const queue = this.#queues.get(channel)
      if (queue?.channel?.id !== channelId) continue
      queue.arrived(unreadMessage(sequence))
      this.#receivers.serveSoon(queue)
    }
  }

  // ── Receiving ──

  receive(channel: string, options: ReceiveOptions): Promise<readonly QueueDelivery[]> {
    try {
      options.signal?.throwIfAborted()
      this.#checkOpen()
      const due = this.#clock.promoted()
      return due ? this.#receiveAfter(due, channel, options) : this.#receiveNow(channel, options)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #receiveAfter(
    due: Promise<unknown>,
    channel: string,
    options: ReceiveOptions,
  ): Promise<readonly QueueDelivery[]> {
    const interrupts = this.#interrupts
    await due
    if (options.waitMs > 0 && interrupts !== this.#interrupts) return []
    options.signal?.throwIfAborted()
    this.#checkOpen()
    return this.#receiveNow(channel, options)
  }

  /** Leases messages, or waits for them. A receiver that waits keeps no frame of a function in memory. */
  #receiveNow(channel: string, options: ReceiveOptions): Promise<readonly QueueDelivery[]> {
    if (options.waitMs <= 0 && !this.#registry.get('queues', channel)) return Promise.resolve([])
    const queue = this.#queue(channel)
    if (queue.waiters.size === 0) {
      const leases = queue.take(options)
      if (leases.length > 0) return Promise.resolve(queue.deliver(leases))
      if (queue.searching) return this.#receiveFound(queue, options)
    }
    return options.waitMs <= 0 ? Promise.resolve([]) : this.#receivers.wait(queue, options)
  }

  async #receiveFound(queue: Queue, options: ReceiveOptions): Promise<readonly QueueDelivery[]> {
    const leases = await this.#search(queue, options)
    if (leases.length > 0) return queue.deliver(leases)
    return options.waitMs <= 0 ? [] : this.#receivers.wait(queue, options)
  }

  /** Continues a search for groups with messages, a step in each tick of the event loop. */
  async #search(queue: Queue, options: ReceiveOptions): Promise<Lease<Queue>[]> {
    let leases: Lease<Queue>[] = []
    while (leases.length === 0 && queue.searching) {
      await nextTick()
      options.signal?.throwIfAborted()
      this.#checkOpen()
      leases = queue.take(options)
    }
    return leases
  }

  #queue(name: string): Queue {
    let queue = this.#queues.get(name)
    if (!queue) {
      queue = new Queue(name, {
        registry: this.#registry,
        reader: this.#reader,
        leases: this.#leases,
        settings: this.#settings,
        heldHeads: this.#heldHeads,
        now: this.#now,
        indexed: (channel) => this.#grouping.has(channel),
        leaseEnded: ({ name: channel }) => {
          for (const listener of this.#listeners) listener.leaseEnded(channel)
        },
        expire: (which, sequences) => this.#expire(which, sequences),
      })
      this.#queues.set(name, queue)
    }
    return queue
  }

  leased(channel: string): number {
    return this.#queues.get(channel)?.leasedCount ?? 0
  }

  interrupt(concerns: (channel: string) => boolean): void {
    this.#interrupts++
    for (const { name, waiters } of this.#queues.values()) {
      if (waiters.size === 0 || !concerns(name)) continue
      for (const waiter of waiters.members()) waiter.resolve([])
    }
  }

  listen(listener: QueueListener): void {
    this.#listeners.push(listener)
  }

  // ── Settling ──

  ack(receipts: readonly string[], clientId: string): Promise<SettleResult> {
    return this.#closed ? Promise.reject(closed()) : this.#settlement.ack(receipts, clientId)
  }

  nack(receipts: readonly string[], clientId: string, options?: NackOptions): Promise<SettleResult> {
    return this.#closed ? Promise.reject(closed()) : this.#settlement.nack(receipts, clientId, options)
  }

  extend(receipts: readonly string[], clientId: string, leaseMs: number): Promise<SettleResult> {
    return this.#closed ? Promise.reject(closed()) : this.#settlement.extend(receipts, clientId, leaseMs)
  }

  // ── Looking and clearing ──

  async peek(name: string, limits: PeekOptions): Promise<QueueMessage[]> {
    this.#checkOpen()
    await this.#clock.promoted()
    const channel = this.#registry.get('queues', name)
    if (!channel || channel.entries === 0) return []
    return peekQueue(this.#reader, channel, this.#queues.get(name), this.#expiryTimes(name), limits)
  }

  async oldestWaiting(name: string): Promise<number | undefined> {
    this.#checkOpen()
    await this.#clock.promoted()
    const channel = this.#registry.get('queues', name)
    if (!channel || channel.entries === 0) return undefined
    return oldestWaiting(this.#reader, channel, this.#queues.get(name), this.#expiryTimes(name))
  }

  #expiryTimes(name: string): { readonly now: number; readonly maxAgeMs: number } {
    return { now: this.#now(), maxAgeMs: maxAgeMsOf(this.#settings, name) }
  }

  async purge(name: string): Promise<number> {
    this.#checkOpen()
    const channel = this.#registry.get('queues', name)
    if (!channel) return 0
    const queue = this.#queue(name)
    queue.pause()
    try {
      return await purgeQueue(this.#store, queue, channel.id, channel.lastSequence)
    } finally {
      queue.resume()
      this.#receivers.serveSoon(queue)
    }
  }

  // ── Expiry ──

  /** Removes expired messages that the sweep found, except leased ones. */
  #expired(messages: readonly { channel: number; sequence: number }[]): void {
    if (messages.length === 0) return
    const names = new Map<number, string>()
    for (const { id, name } of this.#registry.all('queues')) names.set(id, name)
    for (const [id, some] of Map.groupBy(messages, ({ channel }) => channel)) {
      const name = names.get(id)
      const sequences = some.map(({ sequence }) => sequence)
      if (name !== undefined) this.#expireWaiting(name, sequences)
    }
  }

  #expireAged(now: number): void {
    for (const channel of this.#registry.all('queues')) {
      const maxAgeMs = channel.entries === 0 ? 0 : maxAgeMsOf(this.#settings, channel.name)
      if (maxAgeMs === 0 || this.#store.damage.has('queues', channel.name)) continue
      this.#expireWaiting(channel.name, this.#aged.find(channel, now, maxAgeMs))
    }
  }

  #expireWaiting(name: string, expired: readonly number[]): void {
    // Damaged rows cannot be removed, and each sweep would try again.
    if (expired.length === 0 || this.#store.damage.has('queues', name)) return
    const queue = this.#queue(name)
    const sequences = expired.filter((sequence) => !queue.isHeld(sequence))
    for (const sequence of sequences) queue.withdraw(sequence)
    if (sequences.length > 0) this.#expire(queue, sequences)
  }

  /** Removes messages past their expiry, or moves them to the dead-letter queue. If that fails, the sweep finds them again. */
  #expire(queue: Queue, sequences: number[]): void {
    const channelId = queue.channel?.id ?? 0
    const operation = { kind: 'expire', channel: queue.name, channelId, now: this.#now(), sequences } as const
    this.#store
      .submit('expire', operation, 0, ({ moved }) => {
        queue.removeHeld(sequences)
        this.#arrived(moved)
      })
      .catch(() => queue.removeHeld(sequences))
      .finally(() => queue.grouped && this.#receivers.serveSoon(queue))
  }

  // ── Life ──

  /** Handles a channel that was deleted or created again: receivers continue to wait, all other data is dropped. */
  forget(name: string): void {
    this.#aged.forget(name)
    this.#grouping.forget(name)
    const queue = this.#queues.get(name)
    if (!queue) return
    queue.reset()
    if (queue.channel) queue.channel.subscribers = queue.waiters.size
    if (queue.idle) this.#queues.delete(name)
  }

  /** Counts the waiting receivers as subscribers of a channel that was created. */
  channelCreated(name: string): void {
    this.#grouping.created(name)
    const queue = this.#queues.get(name)
    if (queue?.channel) queue.channel.subscribers = queue.waiters.size
  }

  /** Removes queues without recent receivers from memory. */
  coolDown(): void {
    for (const [name, queue] of this.#queues) {
      if (!queue.cold) continue
      queue.forgetWindow()
      if (queue.idle) this.#queues.delete(name)
    }
  }

  /**
   * Continues after the store was read again. Leases of messages that still exist continue; all other data is read
   * again.
   */
  reopened(): void {
    for (const queue of this.#queues.values()) {
      const id = queue.channel?.id
      const gone = queue
        .heldSequences()
        .filter((sequence) => id === undefined || !this.#exists(id, queue.name, sequence))
      queue.removeHeld(gone)
      queue.forgetWindow()
      this.#receivers.serveSoon(queue)
    }
    this.#clock.start()
  }

  #exists(id: number, name: string, sequence: number): boolean {
    try {
      return this.#reader.exists(id, name, sequence)
    } catch (error) {
      if (!this.#store.damage.has('queues', name)) throw error
      return false
    }
  }

  #checkOpen(): void {
    if (this.#closed) throw closed()
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const listener of this.#listeners) listener.closed()
    this.#grouping.close()
    this.#heldHeads.close()
    this.#clock.close()
    for (const queue of this.#queues.values()) {
      for (const waiter of queue.waiters.members()) waiter.reject(closed())
    }
    await this.#settlement.returnAll()
    this.#leases.close()
  }
}

function closed(): BrokerError {
  return unavailable('it is closed')
}
