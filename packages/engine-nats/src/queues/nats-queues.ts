import type {
  NackOptions,
  PeekOptions,
  QueueDelivery,
  QueueEngine,
  QueueListener,
  QueueMessage,
  QueueSend,
  ReceiveOptions,
  SendResult,
  SettleResult,
} from '@signalbox/broker-core/engine'
import { decodeQueueMessage, maxAgeMsOf, messageSize, ResultSize, unavailable } from '@signalbox/broker-core/engine'
import type { Msg } from '@nats-io/transport-node'
import type { Static } from 'typebox'
import { Type } from 'typebox'
import { setImmediate } from 'node:timers/promises'

import type { StoredChannel } from '../channels/channel-bucket.ts'
import { jsonOf } from '../json.ts'
import type { Parts } from '../parts.ts'
import { failure, reportFailure } from '../problems.ts'
import { DeadLetters, Disposal, expiryIn, queueMessageOf } from './deliveries.ts'
import type { Lease } from './leases.ts'
import { LeaseKeeper, Leases, Receipts } from './leases.ts'
import { QueueGauges } from './queue-gauges.ts'
import { QueueSender } from './queue-sender.ts'
import { Queue } from './queue.ts'
import { LeaseClaims, ReceiptSettler } from './receipt-settler.ts'
import { MAX_TIMER_MS, MultiMap } from '@signalbox/broker-core/internal'

/** The interval at which a queue is looked up while it is being deleted or created again. */
const AGAIN_MS = 20

/** The reason of an abort for a receiver whose wait another part of the node ended. */
const INTERRUPTED = new Error('the wait was interrupted')

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
  readonly #listeners: QueueListener[] = []
  /** The receivers on this node that wait. */
  readonly #waits = new MultiMap<string, AbortController>()

  private constructor(parts: Parts, receipts: Receipts) {
    this.#parts = parts
    this.gauges = new QueueGauges(parts, (channel, message) => this.#disposal.expireStored(channel, message))
    this.#sender = new QueueSender(parts, this.gauges)
    this.#disposal = new Disposal(parts, this.gauges, new DeadLetters(parts, this.#sender))
    this.#leases = new Leases(
      parts.counterTable,
      (lease) => this.#lapse(lease),
      (channel) => {
        for (const listener of this.#listeners) listener.leaseEnded(channel)
      },
    )
    this.#keeper = new LeaseKeeper(parts, this.#leases, receipts)
    this.#claims = new LeaseClaims(parts)
    this.#settler = new ReceiptSettler(parts, this.#leases, this.#keeper, receipts, this.#disposal, this.#claims)
    this.#reader = new QueueReader(parts, this.gauges, this.#disposal)
    this.#purge = new Purge(parts, this.#leases, this.gauges, (incarnation) => this.#queues.get(incarnation))
  }

  static async open(parts: Parts): Promise<NatsQueues> {
    const queues = new NatsQueues(parts, await Receipts.open(parts.keyedRecords, parts.subjects))
    queues.#settler.start()
    queues.#purge.start()
    parts.storedChannels.onChange(({ type }) => {
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
    const returnMessage = async (): Promise<void> => {
      if (await this.#claims.isOurs(lease)) await this.#disposal.returnMessage(lease.delivery)
    }
    return this.#disposal.ended(returnMessage())
  }

  send(channel: string, message: QueueSend): Promise<SendResult> {
    return this.#sender.send(channel, message)
  }

  sendBatch(channel: string, messages: readonly QueueSend[]): Promise<readonly SendResult[]> {
    return this.#sender.sendBatch(channel, messages)
  }

  async receive(name: string, options: ReceiveOptions): Promise<readonly QueueDelivery[]> {
    const { signal, waitMs } = options
    if (waitMs <= 0) return this.#receive(name, options)
    const wait = new AbortController()
    const abort = (): void => wait.abort(signal?.reason)
    signal?.throwIfAborted()
    signal?.addEventListener('abort', abort)
    this.#waits.add(name, wait)
    try {
      return await this.#receive(name, { ...options, signal: wait.signal })
    } catch (error) {
      if (error === INTERRUPTED) return []
      throw error
    } finally {
      signal?.removeEventListener('abort', abort)
      this.#waits.delete(name, wait)
    }
  }

  async #receive(name: string, options: ReceiveOptions): Promise<readonly QueueDelivery[]> {
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

  leased(name: string): number {
    const channel = this.#parts.storedChannels.get('queues', name)
    return (channel && this.#parts.counterTable.get(channel.incarnation)?.leased) ?? 0
  }

  interrupt(concerns: (channel: string) => boolean): void {
    for (const name of this.#waits.keys()) {
      if (concerns(name)) for (const wait of this.#waits.get(name)) wait.abort(INTERRUPTED)
    }
  }

  listen(listener: QueueListener): void {
    this.#listeners.push(listener)
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
    const stopListening = this.#parts.storedChannels.onChange((changed) => {
      if (changed.type === 'queues' && changed.name === name) resolve()
    })
    // The servers may know of a deletion before this node does.
    const wait = before ? AGAIN_MS : until - Date.now()
    const timer = setTimeout(done, Math.max(0, Math.min(wait, MAX_TIMER_MS)))
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

  async nack(
    receipts: readonly string[],
    clientId: string,
    { delayMs, reject = false }: NackOptions = {},
  ): Promise<SettleResult> {
    const delay = delayMs === undefined ? {} : { delayMs }
    return this.#settler.settle(receipts, clientId, { what: 'nack', ...delay, ...(reject ? { reject } : {}) })
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
      settings.onProblem(failure('removing the records of a deleted queue', error))
    }
  }

  /** Ends all waits. */
  end(): void {
    if (!this.#closing.signal.aborted) for (const listener of this.#listeners) listener.closed()
    this.#closing.abort()
    this.gauges.close()
    for (const queue of this.#queues.values()) queue.end()
  }

  /** Resolves when the servers have no request of this node for groups, after {@link end}. */
  async groupsIdle(): Promise<void> {
    if (this.#parts.connection.connected) {
      await Promise.all([...this.#queues.values()].map((queue) => queue.partitionsIdle()))
    }
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

/** Reads the messages of a queue without its consumer. */
class QueueReader {
  readonly #parts: Parts
  readonly #gauges: QueueGauges
  readonly #disposal: Disposal

  constructor(parts: Parts, gauges: QueueGauges, disposal: Disposal) {
    this.#parts = parts
    this.#gauges = gauges
    this.#disposal = disposal
  }

  /**
   * Returns when the oldest waiting message was sent. The servers know the time of the first stored message; only a
   * queue with delayed or expired messages is read, because those may be first.
   */
  async oldestWaiting(channel: StoredChannel): Promise<number | undefined> {
    const { messages, delayed, expired, firstStoredAt } = await this.#gauges.read(channel)
    const { leased, retrying } = this.#parts.counters.live(channel.incarnation)
    if (messages - delayed - leased - retrying <= 0) return undefined
    const mayAge = maxAgeMsOf(this.#parts.channelSettings, channel.name) > 0
    if (delayed === 0 && expired === 0 && !mayAge) return firstStoredAt
    return (await this.peek(channel, { maxMessages: 1 }))[0]?.timestamp
  }

  async peek(channel: StoredChannel, options: PeekOptions): Promise<readonly QueueMessage[]> {
    const { maxMessages, fromSequence = 1, ...limit } = options
    const { messages, subjects, clock } = this.#parts
    const { messages: held, expired, bytes, lastSequence } = await this.#gauges.read(channel)
    if (held === 0) return []
    const shown: QueueMessage[] = []
    const result = new ResultSize(limit)
    // The size of a message is known only when it has arrived.
    result.mayFit(bytes / (held + expired))
    const filter = subjects.all(channel.incarnation)
    await messages.forward(channel.stream, filter, fromSequence, lastSequence, maxMessages, (stored) => {
      const record = decodeQueueMessage(stored.data)
      const now = clock.now()
      if (!record || record.dueAt > now) return true
      const expiresAt = expiryIn(this.#parts, channel, record, stored.timestamp)
      if (expiresAt > 0 && expiresAt <= now) return true
      if (!result.add(record.message, messageSize(record.message))) return false
      const receiveCount = this.#disposal.receivesOf(channel, stored.sequence)
      shown.push(queueMessageOf(channel.name, record, { ...stored, receiveCount }))
      if (shown.length === maxMessages) return false
      if (!result.isFull) return true
      if (stored.sequence < lastSequence) result.leaveOut()
      return false
    })
    return shown
  }
}

/** The time that the other nodes have to report their leases, in milliseconds. */
const ANSWER_MS = 1_000
const PARALLEL = 256

const LEASED = Type.Object({ node: Type.String(), sequences: Type.Array(Type.Integer({ minimum: 1 })) })

type Leased = Static<typeof LEASED>

/** Purges queues, except messages that are leased on any node. */
class Purge {
  readonly #parts: Parts
  readonly #leases: Leases
  readonly #gauges: QueueGauges
  readonly #queueOf: (incarnation: string) => Queue | undefined

  constructor(parts: Parts, leases: Leases, gauges: QueueGauges, queueOf: (incarnation: string) => Queue | undefined) {
    this.#parts = parts
    this.#leases = leases
    this.#gauges = gauges
    this.#queueOf = queueOf
  }

  /** Answers other nodes with the leases of this node. */
  start(): void {
    const { connection, subjects } = this.#parts
    connection.listen(subjects.nodes('leased'), (message) => this.#answer(message))
  }

  async #answer(message: Msg): Promise<void> {
    const incarnation = message.string()
    this.#gauges.noRetries(incarnation)
    try {
      await this.#queueOf(incarnation)?.beforePurge()
    } catch (error) {
      // The servers deliver the remaining messages again.
      reportFailure(this.#parts.settings.onProblem, 'returning messages without a receiver', error)
    }
    const sequences = [...this.#leases.sequences(incarnation)]
    message.respond(JSON.stringify({ node: this.#parts.node, sequences } satisfies Leased))
  }

  async run(channel: StoredChannel): Promise<number> {
    const { connection } = this.#parts
    this.#gauges.noRetries(channel.incarnation)
    await this.#gauges.sweep(channel)
    const kept = new Set(await this.#leasedAnywhere(channel))
    const { lastSequence } = await this.#gauges.read(channel)
    const removed =
      kept.size === 0
        ? (await connection.call(() => connection.manager.streams.purge(channel.stream))).purged
        : await this.#removeAllBut(channel, kept, lastSequence)
    this.#queueOf(channel.incarnation)?.purged(lastSequence, kept)
    return removed
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE when a node does not answer */
  async #leasedAnywhere({ incarnation }: StoredChannel): Promise<readonly number[]> {
    const found: number[] = []
    const read = (answer: Msg): string => {
      const leased = jsonOf(LEASED, answer.string())
      for (const sequence of leased?.sequences ?? []) found.push(sequence)
      return leased?.node ?? ''
    }
    const { silent } = await this.#parts.peers.askAll('leased', incarnation, read, ANSWER_MS)
    if (silent.length > 0) throw unavailable('another node did not report its leases')
    return found
  }

  /**
   * Removes single messages: a purge up to a sequence makes server 2.9 forget the deliveries after it. The newest are first:
   * otherwise, when the head of a group is removed, the servers deliver the next one to a request that waits. Messages that
   * the servers do not remove are kept too.
   */
  async #removeAllBut(channel: StoredChannel, kept: Set<number>, lastSequence: number): Promise<number> {
    const { messages, subjects } = this.#parts
    const found: number[] = []
    const all = subjects.all(channel.incarnation)
    await messages.forward(channel.stream, all, 1, lastSequence, PARALLEL, ({ sequence }) => {
      if (!kept.has(sequence)) found.push(sequence)
      return true
    })
    let removed = 0
    while (found.length > 0) {
      const newest = found.splice(-PARALLEL).toReversed()
      const outcomes = await Promise.all(newest.map((sequence) => this.#gauges.removeOne(channel, sequence)))
      removed += outcomes.filter(Boolean).length
      for (const [i, sequence] of newest.entries()) if (outcomes[i] !== true) kept.add(sequence)
    }
    return removed
  }
}
