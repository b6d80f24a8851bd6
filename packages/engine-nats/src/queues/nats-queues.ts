import type {
  PeekOptions,
  QueueDelivery,
  QueueEngine,
  QueueMessage,
  QueueSend,
  ReceiveOptions,
  SendResult,
  SettleResult,
} from '@signalbox/broker-core/engine'
import { unavailable } from '@signalbox/broker-core/engine'
import { messageOf } from '@signalbox/broker-core/internal'

import { setImmediate } from 'node:timers/promises'

import type { StoredChannel } from '../channels/stored-channel.ts'
import type { Parts } from '../parts.ts'
import { DeadLetters } from './dead-letters.ts'
import { Disposal } from './disposal.ts'
import { LeaseClaims } from './lease-claims.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import type { Lease } from './leases.ts'
import { Leases } from './leases.ts'
import { Purge } from './purge.ts'
import { QueueGauges } from './queue-gauges.ts'
import { QueueReader } from './queue-reader.ts'
import { QueueSender } from './queue-sender.ts'
import { Queue } from './queue.ts'
import { Receipts } from './receipts.ts'
import { ReceiptSettler } from './receipt-settler.ts'

/** The interval at which a queue is looked up while it is being deleted or created again. */
const AGAIN_MS = 20

/**
 * Queues on NATS: each is a work-queue stream with one consumer. The nodes keep the leases that they
 * granted.
 */
export class NatsQueues implements QueueEngine {
  readonly gauges: QueueGauges
  readonly #parts: Parts
  readonly #queues = new Map<string, Queue>()
  readonly #sender: QueueSender
  readonly #disposal: Disposal
  readonly #leases: Leases
  readonly #keeper: LeaseKeeper
  readonly #claims: LeaseClaims
  readonly #settler: ReceiptSettler
  readonly #reader: QueueReader
  readonly #purge: Purge
  readonly #closing = new AbortController()

  private constructor(parts: Parts, receipts: Receipts) {
    this.#parts = parts
    this.gauges = new QueueGauges(parts)
    this.#sender = new QueueSender(parts, this.gauges)
    this.#disposal = new Disposal(parts, this.gauges, new DeadLetters(parts, this.#sender))
    this.#leases = new Leases(parts.counterTable, (lease) => this.#lapse(lease))
    this.#keeper = new LeaseKeeper(parts, this.#leases, receipts)
    this.#claims = new LeaseClaims(parts)
    this.#settler = new ReceiptSettler(parts, this.#leases, this.#keeper, receipts, this.#disposal, this.#claims)
    this.#reader = new QueueReader(parts, this.gauges, this.#disposal)
    this.#purge = new Purge(parts, this.#leases, this.gauges, async (incarnation) =>
      this.#queues.get(incarnation)?.returnStash(),
    )
  }

  static async open(parts: Parts): Promise<NatsQueues> {
    const queues = new NatsQueues(parts, await Receipts.open(parts.keyedRecords, parts.subjects))
    queues.#settler.start()
    queues.#purge.start()
    parts.storedChannels.onChange((type) => {
      if (type === 'queues') queues.#dropGone()
    })
    return queues
  }

  #dropGone(): void {
    for (const [incarnation, queue] of this.#queues) {
      if (this.#parts.storedChannels.byIncarnation(incarnation)) continue
      this.#queues.delete(incarnation)
      queue.drop()
      this.#leases.forget(incarnation)
      this.gauges.forget(incarnation)
    }
  }

  #lapse(lease: Lease): Promise<void> {
    const giveBack = async (): Promise<void> => {
      if (await this.#claims.isOurs(lease)) await this.#disposal.giveBack(lease.delivery)
    }
    return this.#disposal.ended(giveBack())
  }

  send(channel: string, message: QueueSend): Promise<SendResult> {
    return this.#sender.send(channel, message)
  }

  sendBatch(channel: string, messages: readonly QueueSend[]): Promise<readonly SendResult[]> {
    return this.#sender.sendBatch(channel, messages)
  }

  async receive(name: string, options: ReceiveOptions): Promise<readonly QueueDelivery[]> {
    const { signal, waitMs } = options
    signal?.throwIfAborted()
    const until = Date.now() + waitMs
    await this.#parts.connection.ready()
    for (;;) {
      const channel = this.#parts.storedChannels.get('queues', name)
      const received = channel && (await this.#queue(channel).receive(options, until))
      if (received) return received
      signal?.throwIfAborted()
      if (this.#closing.signal.aborted) throw unavailable('it is closed')
      if (Date.now() >= until) return []
      await this.#change(name, channel, until, signal)
    }
  }

  #queue(channel: StoredChannel): Queue {
    let queue = this.#queues.get(channel.incarnation)
    if (!queue) {
      queue = new Queue(this.#parts, channel, this.#keeper, this.#disposal)
      this.#queues.set(channel.incarnation, queue)
    }
    return queue
  }

  /** Resolves when the queue was created, deleted or replaced, or when it must be checked again. */
  async #change(name: string, before: StoredChannel | undefined, until: number, signal?: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const done = (): void => resolve()
    const stopListening = this.#parts.storedChannels.onChange((type, changed) => {
      if (type === 'queues' && changed === name) resolve()
    })
    // The servers may know of a deletion before this node does.
    const wait = before ? AGAIN_MS : until - Date.now()
    const timer = setTimeout(done, Math.max(0, Math.min(wait, 2 ** 31 - 1)))
    signal?.addEventListener('abort', done)
    this.#closing.signal.addEventListener('abort', done)
    try {
      await promise
    } finally {
      clearTimeout(timer)
      stopListening()
      signal?.removeEventListener('abort', done)
      this.#closing.signal.removeEventListener('abort', done)
    }
  }

  async ack(receipts: readonly string[], clientId: string): Promise<SettleResult> {
    return this.#settler.settle(receipts, clientId, { what: 'ack' })
  }

  async nack(receipts: readonly string[], clientId: string): Promise<SettleResult> {
    return this.#settler.settle(receipts, clientId, { what: 'nack' })
  }

  async extend(receipts: readonly string[], clientId: string, leaseMs: number): Promise<SettleResult> {
    return this.#settler.settle(receipts, clientId, { what: 'extend', leaseMs })
  }

  async peek(name: string, options: PeekOptions): Promise<readonly QueueMessage[]> {
    await this.#parts.connection.ready()
    const channel = this.#parts.storedChannels.get('queues', name)
    return channel ? this.#reader.peek(channel, options) : []
  }

  async oldestWaiting(name: string): Promise<number | undefined> {
    await this.#parts.connection.ready()
    const channel = this.#parts.storedChannels.get('queues', name)
    return channel && this.#reader.oldestWaiting(channel)
  }

  async purge(name: string): Promise<number> {
    await this.#parts.connection.ready()
    const channel = this.#parts.storedChannels.get('queues', name)
    return channel ? this.#purge.run(channel) : 0
  }

  /** Removes the keyed records of a deleted queue. */
  async forget(channel: StoredChannel): Promise<void> {
    const { keyedRecords, subjects, settings } = this.#parts
    try {
      await keyedRecords.remove(subjects.keyedRecord('q', channel.incarnation, '>'))
      await this.#claims.forget(channel)
    } catch (error) {
      settings.onProblem({
        kind: 'failed',
        message: `removing the records of a deleted queue failed: ${messageOf(error)}`,
        error,
      })
    }
  }

  /** Ends all waits. */
  end(): void {
    this.#closing.abort()
    this.gauges.close()
    for (const queue of this.#queues.values()) queue.end()
  }

  /** Returns the deliveries without a receiver, and leaves the leases to the servers. Called after the last delivery. */
  async close(): Promise<void> {
    this.end()
    // Waits end in the meantime; their deliveries are returned too.
    await setImmediate()
    // Without the servers, work in the background could only wait for them.
    if (!this.#parts.connection.connected) return
    await this.#disposal.idle()
    await Promise.allSettled([...this.#queues.values()].map((queue) => queue.returnStash()))
    await this.#keeper.handOver()
  }
}
