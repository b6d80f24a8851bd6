import type { GroupSettings, QueueDelivery, ReceiveOptions } from '@signalbox/broker-core/engine'
import { ResultSize } from '@signalbox/broker-core/engine'
import { setTimeout as pause } from 'node:timers/promises'

import type { StoredChannel } from '../channels/channel-bucket.ts'
import type { Parts } from '../parts.ts'
import type { PullEnd } from '../pulls.ts'
import { QUEUE_CONSUMER } from '../streams.ts'
import type { Delivery, Disposal } from './deliveries.ts'
import { DeliveryAdmission, hasExpired } from './deliveries.ts'
import type { LeaseKeeper } from './leases.ts'
import { PartitionPulls } from './partition-pulls.ts'

/** The maximum duration of one request for messages. */
const MAX_PULL_MS = 20_000
/** The maximum number of messages that are not due and are skipped at once. */
const MAX_BATCH = 256
/**
 * The approximate number of bytes that the servers count for a message in addition to body, metadata and
 * tags.
 */
const OVERHEAD_BYTES = 320
/** The pause after an immediate answer without messages. */
const AGAIN_MS = 10
/** The interval at which a receiver checks that the connection is back. */
const RECONNECT_MS = 50

/** The time that the partitions of a queue with groups have to answer a receive without a wait, in milliseconds. */
const ANSWER_MS = 250
/** The time in which a receive of several messages gathers those of other partitions, in milliseconds. */
const GATHER_MS = 5

/** One queue on this node. Requests messages from the servers while a receiver waits. */
export class Queue {
  readonly channel: StoredChannel
  readonly #parts: Parts
  readonly #keeper: LeaseKeeper
  readonly #disposal: Disposal
  readonly #admission: DeliveryAdmission
  readonly #line: WaitingLine
  readonly #partitions: PartitionPulls
  readonly #closing = new AbortController()
  #purgedUpTo = 0
  #keptByPurge: ReadonlySet<number> = new Set()

  constructor(parts: Parts, channel: StoredChannel, keeper: LeaseKeeper, disposal: Disposal) {
    this.#parts = parts
    this.channel = channel
    this.#keeper = keeper
    this.#disposal = disposal
    this.#admission = new DeliveryAdmission(parts, channel, disposal)
    this.#line = new WaitingLine(
      (delivery) => disposal.returnUncounted(delivery),
      (work) => disposal.background(work),
    )
    this.#partitions = new PartitionPulls({
      request: (consumer, waitMs) => this.#pull(1, undefined, waitMs, consumer).ended,
      offer: (delivery) => this.#line.offer(delivery),
      closing: this.#closing.signal,
    })
  }

  /** Receives messages. Resolves with undefined if the queue was deleted before any arrived. */
  async receive(options: ReceiveOptions, until: number): Promise<readonly QueueDelivery[] | undefined> {
    const receiver = new WaitingReceiver()
    try {
      return this.#groups()
        ? await this.#serveGroups(receiver, options, until)
        : await this.#serve(receiver, options, until)
    } finally {
      this.#line.leave(receiver)
    }
  }

  async #serve(
    receiver: WaitingReceiver,
    options: ReceiveOptions,
    until: number,
  ): Promise<readonly QueueDelivery[] | undefined> {
    let batch = Math.min(MAX_BATCH, options.maxMessages)
    let maxBytes = options.maxBytes
    for (;;) {
      // Deliveries that arrived for this receiver during its pause come before those without a receiver.
      const kept = this.#grant(receiver, [...receiver.take(), ...this.#line.takeStash()], options)
      if (kept.length > 0) return kept
      this.#line.join(receiver)
      const left = until - Date.now()
      const pull = this.#pull(batch, maxBytes, Math.max(0, Math.min(MAX_PULL_MS, left)))
      const outcome = await this.#outcome(receiver, options.signal, pull)
      const granted = this.#grant(receiver, outcome.deliveries, options)
      if (granted.length > 0) {
        // The servers stopped before a message that exceeds `maxBytes`.
        if (outcome.end === 'large') options.onMore?.()
        return granted
      }
      options.signal?.throwIfAborted()
      if (this.#closing.signal.aborted || outcome.end === 'gone') return undefined
      if (outcome.passed > 0) batch = Math.min(MAX_BATCH, batch * 4)
      else if (outcome.end === 'large') [batch, maxBytes] = [1, undefined]
      else if (Date.now() >= until) return []
      else {
        await pause(AGAIN_MS)
        if (outcome.end === 'lost') await this.#reconnected(until, options.signal)
      }
    }
  }

  async #serveGroups(
    receiver: WaitingReceiver,
    options: ReceiveOptions,
    until: number,
  ): Promise<readonly QueueDelivery[] | undefined> {
    const { signal, maxMessages } = options
    const end = Math.max(until, Date.now() + ANSWER_MS)
    for (;;) {
      const granted = this.#grant(receiver, [...receiver.take(), ...this.#line.takeStash()], options)
      if (granted.length > 0) return granted
      signal?.throwIfAborted()
      if (this.#closing.signal.aborted) return undefined
      if (Date.now() >= end) return []
      this.#line.join(receiver)
      await this.#arrival(receiver, signal, end)
      // Messages of other partitions are on their way.
      if (!receiver.waits && maxMessages > 1) await pause(GATHER_MS)
    }
  }

  /** Waits for a message of any partition, the end of the wait or of the queue, or an abort. */
  async #arrival(receiver: WaitingReceiver, signal: AbortSignal | undefined, until: number): Promise<void> {
    const stopListening = this.#partitions.listen()
    const { promise: stopped, resolve: stop } = Promise.withResolvers<undefined>()
    const onStop = (): void => stop(undefined)
    const timer = setTimeout(onStop, Math.min(MAX_PULL_MS, until - Date.now()))
    signal?.addEventListener('abort', onStop)
    this.#closing.signal.addEventListener('abort', onStop)
    try {
      await Promise.race([receiver.arrival, stopped])
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onStop)
      this.#closing.signal.removeEventListener('abort', onStop)
      stopListening()
    }
  }

  /** Lets a receiver wait through a lost connection, up to its own wait time. */
  async #reconnected(until: number, signal: AbortSignal | undefined): Promise<void> {
    const { connection } = this.#parts
    while (!connection.connected && Date.now() < until) {
      if (signal?.aborted === true || this.#closing.signal.aborted) return
      await pause(RECONNECT_MS)
    }
  }

  /**
   * Waits for the first of: the end of the request, a message from another receiver's request, the end of
   * the queue, an abort.
   */
  async #outcome(receiver: WaitingReceiver, signal: AbortSignal | undefined, pull: Pulled): Promise<Outcome> {
    const { promise: stopped, resolve: stop } = Promise.withResolvers<undefined>()
    const onStop = (): void => stop(undefined)
    signal?.addEventListener('abort', onStop)
    this.#closing.signal.addEventListener('abort', onStop)
    if (signal?.aborted === true || this.#closing.signal.aborted) onStop()
    try {
      const ended = await Promise.race([pull.ended, receiver.arrival.then(() => undefined), stopped])
      if (!ended) pull.giveUp()
      const deliveries = [...receiver.take(), ...(ended?.deliveries ?? [])]
      return { end: ended?.end ?? 'done', deliveries, passed: ended?.passed ?? 0 }
    } finally {
      signal?.removeEventListener('abort', onStop)
      this.#closing.signal.removeEventListener('abort', onStop)
    }
  }

  #pull(batch: number, maxBytes: number | undefined, waitMs: number, consumer = QUEUE_CONSUMER): Pulled {
    const arrivals: Promise<Delivery | undefined>[] = []
    let over = false
    const bytes = maxBytes === undefined ? undefined : maxBytes + batch * OVERHEAD_BYTES
    const options = { batch, waitMs, maxBytes: bytes }
    const pulling = this.#parts.pulls.pull(this.channel.stream, consumer, options, (message) => {
      arrivals.push(Promise.resolve(this.#admission.admit(message)))
      if (over) offerRest()
    })
    const offerAll = async (): Promise<void> => {
      for (const delivery of await Promise.all(arrivals.splice(0))) if (delivery) this.#line.offer(delivery)
    }
    const offerRest = (): void => this.#disposal.background(offerAll())
    const end = async (): Promise<Outcome> => {
      const how = await pulling
      const arrived = await Promise.all(arrivals.splice(0))
      const deliveries = arrived.filter((delivery) => delivery !== undefined)
      if (over) {
        for (const delivery of deliveries) this.#line.offer(delivery)
        return { end: how, deliveries: [], passed: 0 }
      }
      over = true
      offerRest()
      return { end: how, deliveries, passed: arrived.length - deliveries.length }
    }
    const ended = end()
    const giveUp = async (): Promise<void> => {
      over = true
      offerRest()
      // The pull may have ended at this moment, with deliveries that no receiver gets otherwise.
      for (const delivery of (await ended).deliveries) this.#line.offer(delivery)
    }
    return { ended, giveUp: () => this.#disposal.background(giveUp()) }
  }

  /** Leases the messages that fit into one answer, and offers the rest to the next receiver. */
  #grant(receiver: WaitingReceiver, deliveries: readonly Delivery[], options: ReceiveOptions): QueueDelivery[] {
    if (deliveries.length === 0) return []
    // The receiver leaves the line, so that the surplus goes to others.
    this.#line.leave(receiver)
    const { maxMessages, clientId, leaseMs, signal } = options
    const granted: QueueDelivery[] = []
    const result = new ResultSize(options)
    let full = signal?.aborted === true || this.#closing.signal.aborted
    let total = 0
    for (const delivery of deliveries) {
      if (this.#isOver(delivery)) continue
      full ||= granted.length >= maxMessages || !result.add(delivery.record.message, delivery.size)
      if (full) {
        this.#line.offer(delivery)
        continue
      }
      total += delivery.size
      if (delivery.receiveCount > 1) this.#parts.counterTable.sinceOpen.redelivered++
      granted.push(this.#keeper.grant(delivery, clientId, leaseMs))
    }
    if (granted.length > 0) this.#parts.counterTable.delivered(this.channel.incarnation, granted.length, total)
    return granted
  }

  /** Returns true for a delivery that no receiver gets: it expired or was purged since it left the servers. */
  #isOver(delivery: Delivery): boolean {
    if (delivery.sequence <= this.#purgedUpTo && !this.#keptByPurge.has(delivery.sequence)) return true
    if (!hasExpired(this.#parts, delivery)) return false
    this.#disposal.background(this.#disposal.expire(delivery))
    return true
  }

  returnStash(): Promise<void> {
    return this.#line.returnStash()
  }

  /**
   * Prepares a purge. Returned messages of a group would come again at once, to a request that waits, and then to a
   * receiver after the purge; so those are dropped, and the purge removes them.
   */
  async beforePurge(): Promise<void> {
    if (this.#groups()) this.#line.takeStash()
    else await this.returnStash()
  }

  /** Drops messages up to a sequence, except those that the purge kept: they may be on their way to a receiver. */
  purged(upTo: number, kept: ReadonlySet<number>): void {
    this.#purgedUpTo = upTo
    this.#keptByPurge = kept
  }

  #groups(): GroupSettings | undefined {
    const { channelSettings } = this.#parts
    return channelSettings.active ? channelSettings.of('queues', this.channel.name).groups : undefined
  }

  /** Resolves when the servers have no request of this node for a partition, after {@link end}. */
  partitionsIdle(): Promise<void> {
    return this.#partitions.idle()
  }

  /** Ends every wait: the queue was deleted, or the engine closes. */
  end(): void {
    this.#line.close()
    this.#closing.abort()
  }

  /** Drops all deliveries of a deleted queue. */
  drop(): void {
    this.#line.drop()
    this.end()
  }
}

interface Outcome {
  readonly end: PullEnd
  readonly deliveries: readonly Delivery[]
  /** The number of messages that arrived and were not for a receiver. */
  readonly passed: number
}

interface Pulled {
  readonly ended: Promise<Outcome>
  /** Called when no receiver waits for the pull any more: later deliveries are offered to others. */
  readonly giveUp: () => void
}

/**
 * The time for which a delivery without a receiver is kept for the next receiver on this node, in
 * milliseconds.
 */
const STASH_MS = 100

/** A receiver that waits for messages. It may receive one that another receiver's request brought. */
export class WaitingReceiver {
  #handed: Delivery | undefined
  #arrival = Promise.withResolvers<void>()

  get waits(): boolean {
    return this.#handed === undefined
  }

  /** Resolves when a message has been passed to it. */
  get arrival(): Promise<void> {
    return this.#arrival.promise
  }

  hand(delivery: Delivery): void {
    this.#handed = delivery
    this.#arrival.resolve()
  }

  /** Returns the message that was passed to it, if any. From then on it waits again. */
  take(): readonly Delivery[] {
    const handed = this.#handed
    if (handed === undefined) return []
    this.#handed = undefined
    this.#arrival = Promise.withResolvers()
    return [handed]
  }
}

/**
 * The receivers of one queue on this node, in order, and for a short time the deliveries without a receiver.
 */
export class WaitingLine {
  readonly #returnMessage: (delivery: Delivery) => Promise<void>
  readonly #background: (work: Promise<void>) => void
  readonly #receivers = new Set<WaitingReceiver>()
  readonly #stash: Delivery[] = []
  #stashTimer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(returnMessage: (delivery: Delivery) => Promise<void>, background: (work: Promise<void>) => void) {
    this.#returnMessage = returnMessage
    this.#background = background
  }

  /** Adds a receiver at the end; a receiver that is in the line keeps its place. */
  join(receiver: WaitingReceiver): void {
    this.#receivers.add(receiver)
  }

  /** Removes a receiver, and offers the message that it did not receive to others. */
  leave(receiver: WaitingReceiver): void {
    this.#receivers.delete(receiver)
    for (const delivery of receiver.take()) this.offer(delivery)
  }

  /** Passes a delivery to the receiver that waits longest. Without one, keeps it for a short time. */
  offer(delivery: Delivery): void {
    if (!this.#isClosed) {
      for (const receiver of this.#receivers) {
        if (receiver.waits) return receiver.hand(delivery)
      }
    }
    this.#stash.push(delivery)
    this.#stash.sort((a, b) => a.sequence - b.sequence)
    this.#stashTimer ??= setTimeout(() => this.#background(this.returnStash()), STASH_MS).unref()
  }

  takeStash(): readonly Delivery[] {
    return this.#stash.splice(0)
  }

  /** Returns the deliveries without a receiver to the servers. */
  async returnStash(): Promise<void> {
    clearTimeout(this.#stashTimer)
    this.#stashTimer = undefined
    await Promise.all(this.#stash.splice(0).map((delivery) => this.#returnMessage(delivery)))
  }

  /** Stops passing deliveries to receivers. */
  close(): void {
    this.#isClosed = true
  }

  /** Drops all deliveries of a deleted queue. */
  drop(): void {
    this.close()
    clearTimeout(this.#stashTimer)
    this.#stash.length = 0
  }
}
