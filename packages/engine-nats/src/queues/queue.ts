import type { QueueDelivery, ReceiveOptions } from '@signalbox/broker-core'
import { messageSize } from '@signalbox/broker-core'
import type { Msg } from '@nats-io/transport-node'
import { setTimeout as pause } from 'node:timers/promises'

import type { StoredChannel } from '../channels/stored-channel.ts'
import type { Parts } from '../parts.ts'
import { QUEUE_CONSUMER } from '../streams.ts'
import { parseAckSubject } from './ack-subject.ts'
import type { AckSubject } from './ack-subject.ts'
import type { Delivery } from './delivery.ts'
import type { Disposal } from './disposal.ts'
import type { LeaseKeeper } from './lease-keeper.ts'
import type { QueueRecord } from './queue-record.ts'
import { readRecord } from './queue-record.ts'

/** The longest that one request for messages stands at the servers. */
const MAX_PULL_MS = 20_000
/** As many at once are passed over that are not due yet. */
const MAX_BATCH = 256
/** How long what came without anybody waiting is kept for the next one here, before other nodes may have it. */
const STASH_MS = 100
/** What the servers count for a message beside its body, metadata and tags, about. */
const OVERHEAD_BYTES = 320
/** Before asking again what was answered at once with nothing. */
const AGAIN_MS = 10
/** How often a receiver looks whether the connection is back. */
const RECONNECT_MS = 50

/** Somebody who waits for messages. */
interface Receiver {
  readonly options: ReceiveOptions
  /** Resolves with a message that came by somebody else's request. */
  offered: PromiseWithResolvers<Delivery>
  waiting: boolean
}

/** One queue on this node: asks the servers for messages when somebody here waits for some. */
export class Queue {
  readonly channel: StoredChannel
  readonly #parts: Parts
  readonly #keeper: LeaseKeeper
  readonly #disposal: Disposal
  readonly #line: Receiver[] = []
  readonly #stash: Delivery[] = []
  readonly #closing = new AbortController()
  #stashTimer: NodeJS.Timeout | undefined

  constructor(parts: Parts, channel: StoredChannel, keeper: LeaseKeeper, disposal: Disposal) {
    this.#parts = parts
    this.channel = channel
    this.#keeper = keeper
    this.#disposal = disposal
  }

  /** Undefined when the queue is gone before anything came. */
  async receive(options: ReceiveOptions, until: number): Promise<readonly QueueDelivery[] | undefined> {
    const receiver: Receiver = { options, offered: Promise.withResolvers(), waiting: true }
    try {
      return await this.#serve(receiver, until)
    } finally {
      this.#leave(receiver)
    }
  }

  #leave(receiver: Receiver): void {
    receiver.waiting = false
    this.#step(receiver)
  }

  /** Out of the line: what is more than the receiver takes is for others. */
  #step(receiver: Receiver): void {
    const at = this.#line.indexOf(receiver)
    if (at !== -1) this.#line.splice(at, 1)
  }

  async #serve(receiver: Receiver, until: number): Promise<readonly QueueDelivery[] | undefined> {
    const { options } = receiver
    let batch = Math.min(MAX_BATCH, options.maxMessages)
    let maxBytes = options.maxBytes
    for (;;) {
      const stashed = this.#grant(this.#stash.splice(0), options)
      if (stashed.length > 0) return stashed
      if (receiver.waiting && !this.#line.includes(receiver)) this.#line.push(receiver)
      const left = until - Date.now()
      const pull = this.#pull(batch, maxBytes, Math.max(0, Math.min(MAX_PULL_MS, left)))
      const outcome = await this.#outcome(receiver, pull)
      if (outcome.deliveries.length > 0) {
        this.#step(receiver)
        const granted = this.#grant(outcome.deliveries, options)
        if (granted.length > 0) return granted
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

  /** Who waits already waits through a lost connection, as long as it wanted to anyway. */
  async #reconnected(until: number, signal: AbortSignal | undefined): Promise<void> {
    const { connection } = this.#parts
    while (!connection.connected && Date.now() < until) {
      if (signal?.aborted === true || this.#closing.signal.aborted) return
      await pause(RECONNECT_MS)
    }
  }

  /** What comes first: the end of the request, a message by somebody else's, the end of the queue, or an abort. */
  async #outcome(receiver: Receiver, pull: Pulled): Promise<Outcome> {
    const { signal } = receiver.options
    const { promise: stopped, resolve: stop } = Promise.withResolvers<undefined>()
    const onStop = (): void => stop(undefined)
    signal?.addEventListener('abort', onStop)
    this.#closing.signal.addEventListener('abort', onStop)
    if (signal?.aborted === true || this.#closing.signal.aborted) onStop()
    try {
      const ended = await Promise.race([pull.ended, receiver.offered.promise.then(() => undefined), stopped])
      if (!ended) pull.giveUp()
      const wasOffered = !receiver.waiting
      if (!ended) this.#step(receiver)
      const deliveries = [...(wasOffered ? [await receiver.offered.promise] : []), ...(ended?.deliveries ?? [])]
      receiver.offered = Promise.withResolvers()
      receiver.waiting = true
      return { end: ended?.end ?? 'done', deliveries, passed: ended?.passed ?? 0 }
    } finally {
      signal?.removeEventListener('abort', onStop)
      this.#closing.signal.removeEventListener('abort', onStop)
    }
  }

  #pull(batch: number, maxBytes: number | undefined, waitMs: number): Pulled {
    const arrivals: Promise<Delivery | undefined>[] = []
    let over = false
    const bytes = maxBytes === undefined ? {} : { maxBytes: maxBytes + batch * OVERHEAD_BYTES }
    const options = { batch, waitMs, ...bytes }
    const pulling = this.#parts.pulls.pull(this.channel.stream, QUEUE_CONSUMER, options, (message) => {
      arrivals.push(Promise.resolve(this.#admit(message)))
      if (over) void offerAll()
    })
    const offerAll = async (): Promise<void> => {
      for (const delivery of await Promise.all(arrivals.splice(0))) if (delivery) this.#offer(delivery)
    }
    const end = async (): Promise<Outcome> => {
      const how = await pulling
      const arrived = await Promise.all(arrivals.splice(0))
      const deliveries = arrived.filter((delivery) => delivery !== undefined)
      if (over) {
        for (const delivery of deliveries) this.#offer(delivery)
        return { end: how, deliveries: [], passed: 0 }
      }
      over = true
      void offerAll()
      return { end: how, deliveries, passed: arrived.length - deliveries.length }
    }
    const giveUp = (): void => {
      if (over) return
      over = true
      void offerAll()
    }
    return { ended: end(), giveUp }
  }

  /** Leases what fits into one answer; the rest goes to whoever waits next. */
  #grant(deliveries: readonly Delivery[], options: ReceiveOptions): QueueDelivery[] {
    const { maxMessages, maxBytes = Infinity, clientId, leaseMs, signal } = options
    const granted: QueueDelivery[] = []
    let bytes = 0
    let full = signal?.aborted === true || this.#closing.signal.aborted
    let total = 0
    for (const delivery of deliveries) {
      if (this.#isOver(delivery)) continue
      full ||= granted.length >= maxMessages || (granted.length > 0 && bytes + delivery.size > maxBytes)
      if (full) {
        this.#offer(delivery)
        continue
      }
      bytes += delivery.size
      total += delivery.size
      granted.push(this.#keeper.grant(delivery, clientId, leaseMs))
    }
    if (granted.length > 0) this.#parts.figures.delivered(this.channel.incarnation, granted.length, total)
    return granted
  }

  /** It expired in the moment since it came. */
  #isOver(delivery: Delivery): boolean {
    const { expiresAt } = delivery.record
    if (expiresAt === 0 || expiresAt > Date.now()) return false
    this.#disposal.background(this.#disposal.expire(delivery))
    return true
  }

  /** For whoever waits longest; kept for a moment when nobody does. */
  #offer(delivery: Delivery): void {
    const next = this.#line.find(({ waiting }) => waiting)
    if (next && !this.#closing.signal.aborted) {
      next.waiting = false
      next.offered.resolve(delivery)
      return
    }
    this.#stash.push(delivery)
    this.#stash.sort((a, b) => a.sequence - b.sequence)
    this.#stashTimer ??= setTimeout(() => this.#disposal.background(this.returnStash()), STASH_MS).unref()
  }

  /** Gives back what nobody took. */
  async returnStash(): Promise<void> {
    clearTimeout(this.#stashTimer)
    this.#stashTimer = undefined
    await Promise.all(this.#stash.splice(0).map((delivery) => this.#disposal.returnUncounted(delivery)))
  }

  /** What of a delivery is for a receiver; what is not is dealt with. */
  #admit(message: Msg): Delivery | Promise<Delivery | undefined> | undefined {
    const subject = message.reply ?? ''
    const ack = parseAckSubject(subject)
    const record = readRecord(message.data)
    if (!ack || !record) {
      this.#parts.connection.nc.publish(subject, '+TERM')
      return undefined
    }
    const now = Date.now()
    const { dueAt, expiresAt } = record
    if (expiresAt > 0 && expiresAt <= now) {
      this.#disposal.background(this.#disposal.expire(this.#delivery(ack, record, subject, 1, 0, false)))
      return undefined
    }
    if (dueAt > now) {
      const wakeAt = expiresAt > 0 ? Math.min(dueAt, expiresAt) : dueAt
      this.#disposal.background(this.#disposal.park(this.channel, ack.sequence, ack.deliveries, subject, wakeAt - now))
      return undefined
    }
    if (ack.deliveries === 1 && dueAt === 0) return this.#delivery(ack, record, subject, 1, 0, false)
    return this.#admitAgain(ack, record, subject)
  }

  /** A message that was delivered before: how often it was received says the cluster. */
  async #admitAgain(ack: AckSubject, record: QueueRecord, subject: string): Promise<Delivery | undefined> {
    try {
      const delayed = record.dueAt > 0
      const { uncounted, noted } = await this.#disposal.uncounted(this.channel, ack.sequence, ack.deliveries, delayed)
      const receiveCount = Math.max(1, ack.deliveries - uncounted)
      const delivery = this.#delivery(ack, record, subject, receiveCount, uncounted, noted)
      const { maxReceiveCount, deadLetterQueue } = record
      if (maxReceiveCount === 0 || deadLetterQueue === '' || receiveCount <= maxReceiveCount) return delivery
      // Its last receive ended with its node.
      await this.#disposal.bury(delivery, receiveCount - 1)
    } catch {
      // The servers are gone just now; the message comes back by itself.
    }
    return undefined
  }

  #delivery(
    { sequence, delivery, timestamp }: AckSubject,
    record: QueueRecord,
    subject: string,
    receiveCount: number,
    uncounted: number,
    noted: boolean,
  ): Delivery {
    return {
      channel: this.channel,
      record,
      sequence,
      delivery,
      ackSubject: subject,
      timestamp,
      receiveCount,
      uncounted,
      noted,
      size: messageSize(record.envelope),
      arrivedAt: Date.now(),
    }
  }

  /** Ends every wait: the queue is gone, or the engine closes. */
  end(): void {
    this.#closing.abort()
  }

  /** The queue is gone, and with it what was kept. */
  drop(): void {
    clearTimeout(this.#stashTimer)
    this.#stash.length = 0
    this.end()
  }
}

interface Outcome {
  readonly end: 'done' | 'large' | 'gone' | 'lost'
  readonly deliveries: readonly Delivery[]
  /** Messages that came and were not for a receiver. */
  readonly passed: number
}

interface Pulled {
  readonly ended: Promise<Outcome>
  /** Nobody waits for it any more: what still comes is offered to others. */
  readonly giveUp: () => void
}
