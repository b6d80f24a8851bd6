import type {
  BrokerError,
  DeadLetterReason,
  EncodedQueueMessage,
  NackOptions,
  QueueMessage,
  ReceivedMessage,
} from '@signalbox/broker-core/engine'
import {
  decodeQueueMessage,
  expiredTarget,
  expiryOf,
  isBrokerError,
  isDeadLetter,
  maxAgeMsOf,
  messageSize,
  retryLimits,
  returnOf,
  toQueueMessage,
} from '@signalbox/broker-core/engine'

import type { StoredChannel } from '../channels/channel-bucket.ts'
import type { Received } from '../large/thread-calls.ts'
import type { Parts } from '../parts.ts'
import { reportFailure, ReportOnce } from '../problems.ts'
import type { AckSubject } from '../pulls.ts'
import { ACK, NAK, nakAfter, parseAckSubject } from '../pulls.ts'
import type { StoredMessage } from '../stored-messages.ts'
import { hash } from '../subjects.ts'
import type { QueueGauges } from './queue-gauges.ts'
import type { QueueSender } from './queue-sender.ts'

/**
 * A message that the servers delivered to this node. They withhold it from others until it is settled or its
 * time is over.
 */
export interface Delivery {
  readonly channel: StoredChannel
  readonly record: EncodedQueueMessage
  readonly sequence: number
  /** The number of this delivery; unique in the queue. */
  readonly delivery: number
  readonly ackSubject: string
  /** The time when the message was stored, in milliseconds since the epoch. */
  readonly timestamp: number
  /** The number of receives, including this one. */
  readonly receiveCount: number
  /**
   * The number of deliveries that were not received: early ones of delayed messages, and ones without a
   * receiver.
   */
  readonly uncounted: number
  /** `true` when a keyed record contains its uncounted deliveries. */
  readonly recorded: boolean
  readonly size: number
  readonly arrivedAt: number
}

/** Returns a stored message as its receivers see it. */
export function queueMessageOf(
  channel: string,
  { message, expiresAt, maxReceiveCount, deadLetterQueue }: EncodedQueueMessage,
  { sequence, timestamp, receiveCount }: Pick<QueueMessage, 'sequence' | 'timestamp' | 'receiveCount'>,
): QueueMessage {
  const added = { channel, timestamp, sequence, receiveCount, expiresAt, maxReceiveCount, deadLetterQueue }
  return toQueueMessage(message, added)
}

/** Returns the parts of a delivered message that decide what happens to it after this receive. */
export function receivedMessageOf({ channel, record, receiveCount }: Delivery): ReceivedMessage {
  const { maxReceiveCount, deadLetterQueue, message } = record
  const { name } = channel
  return { channel: name, receiveCount, maxReceiveCount, deadLetterQueue, isDeadLetter: isDeadLetter(message.tags) }
}

/** Returns when a message expires by its own expiry or by the settings of its queue, in ms since the epoch; 0 means never. */
export function expiryIn(
  { channelSettings }: Parts,
  { name }: StoredChannel,
  { expiresAt }: EncodedQueueMessage,
  timestamp: number,
): number {
  return expiryOf({ timestamp, expiresAt }, maxAgeMsOf(channelSettings, name))
}

/** Returns whether a message expired. A node with a wrong clock does not decide it. */
export function hasExpired(
  parts: Parts,
  { channel, record, timestamp }: Pick<Delivery, 'channel' | 'record' | 'timestamp'>,
): boolean {
  const expiresAt = expiryIn(parts, channel, record, timestamp)
  return expiresAt > 0 && expiresAt <= parts.clock.now() && !parts.clock.isSkewed
}

/** The counts of a message's deliveries, including this one. */
type Counts = Pick<Delivery, 'receiveCount' | 'uncounted' | 'recorded'>

/** The time for which a node with a wrong clock postpones a message that is not due, in milliseconds. */
const SKEWED_MS = 5_000

const FIRST: Counts = { receiveCount: 1, uncounted: 0, recorded: false }

/** Decides which deliveries of a queue go to a receiver, and handles the others. */
export class DeliveryAdmission {
  readonly #parts: Parts
  readonly #channel: StoredChannel
  readonly #disposal: Disposal

  constructor(parts: Parts, channel: StoredChannel, disposal: Disposal) {
    this.#parts = parts
    this.#channel = channel
    this.#disposal = disposal
  }

  /**
   * Returns the delivery, if it is for a receiver. Handles messages that are early, expired, due for the
   * dead-letter queue, or invalid, and returns undefined for them. Never rejects.
   */
  admit(message: Received): Delivery | Promise<Delivery | undefined> | undefined {
    const subject = message.reply ?? ''
    const ack = parseAckSubject(subject)
    const record = decodeQueueMessage(message.data)
    if (!ack || !record) {
      this.#parts.connection.nc.publish(subject, '+TERM')
      return undefined
    }
    const { clock } = this.#parts
    const now = clock.now()
    const { dueAt } = record
    const expiresAt = expiryIn(this.#parts, this.#channel, record, ack.timestamp)
    if (expiresAt > 0 && expiresAt <= now && !clock.isSkewed) {
      const receiveCount = this.#disposal.receivesOf(this.#channel, ack.sequence)
      const delivery = this.#delivery(ack, record, subject, { ...FIRST, receiveCount })
      this.#disposal.background(this.#disposal.expire(delivery))
      return undefined
    }
    if (dueAt > now) {
      const wakeAt = expiresAt > 0 ? Math.min(dueAt, expiresAt) : dueAt
      const { sequence, deliveries } = ack
      // A wrong clock could postpone the message for much too long.
      const forMs = clock.isSkewed ? Math.min(SKEWED_MS, wakeAt - now) : wakeAt - now
      this.#disposal.background(this.#disposal.park(this.#channel, sequence, deliveries, subject, forMs))
      return undefined
    }
    if (ack.deliveries === 1 && dueAt === 0) return this.#delivery(ack, record, subject, FIRST)
    return this.#admitAgain(ack, record, subject)
  }

  /** Admits a message that was delivered before: its receive count needs the cluster's records. */
  async #admitAgain(ack: AckSubject, record: EncodedQueueMessage, subject: string): Promise<Delivery | undefined> {
    try {
      const { sequence, deliveries } = ack
      const { uncounted, recorded } = await this.#disposal.uncounted(
        this.#channel,
        sequence,
        deliveries,
        record.dueAt > 0,
      )
      const receiveCount = Math.max(1, deliveries - uncounted)
      const delivery = this.#delivery(ack, record, subject, { receiveCount, uncounted, recorded })
      const limits = retryLimits(this.#parts.channelSettings, receivedMessageOf(delivery))
      const { maxReceiveCount, deadLetterQueue } = limits
      if (maxReceiveCount === 0 || deadLetterQueue === '' || receiveCount <= maxReceiveCount) return delivery
      // The node of its last receive died, its dead-letter queue was full, or the policy allows fewer receives now.
      await this.#disposal.bury({ ...delivery, receiveCount: maxReceiveCount }, deadLetterQueue)
    } catch (error) {
      // The servers deliver the message again.
      reportFailure(this.#parts.settings.onProblem, 'checking a redelivered message', error)
    }
    return undefined
  }

  #delivery(
    { sequence, delivery, timestamp }: AckSubject,
    record: EncodedQueueMessage,
    ackSubject: string,
    counts: Counts,
  ): Delivery {
    const size = messageSize(record.message)
    const arrivedAt = Date.now()
    return { channel: this.#channel, record, sequence, delivery, ackSubject, timestamp, size, arrivedAt, ...counts }
  }
}

/** The pause before a message is moved again whose dead-letter queue is full. */
const DEAD_LETTER_RETRY_MS = 5_000
/** Like {@link DEAD_LETTER_RETRY_MS}, for a failure that an operator must correct first. */
const DEAD_LETTER_REFUSED_MS = 60_000

/** The number of redelivered messages whose receive counts are remembered for `peek`. */
const MAX_REMEMBERED = 10_000

/** Ends deliveries: removes a message, returns it to its queue, or moves it to the dead-letter queue. */
export class Disposal {
  readonly #parts: Parts
  readonly #gauges: QueueGauges
  readonly #deadLetters: DeadLetters
  readonly #refused: ReportOnce
  readonly #counts = new Map<string, number>()
  readonly #running = new Set<Promise<void>>()

  constructor(parts: Parts, gauges: QueueGauges, deadLetters: DeadLetters) {
    this.#parts = parts
    this.#refused = new ReportOnce(parts.settings.onProblem)
    this.#gauges = gauges
    this.#deadLetters = deadLetters
  }

  /** Removes the message. Resolves when that is durable. @throws BrokerError ENGINE_UNAVAILABLE */
  async remove(delivery: Delivery): Promise<void> {
    await this.#parts.connection.request(delivery.ackSubject, ACK)
    this.#counts.delete(this.#recordKey(delivery.channel, delivery.sequence))
    if (delivery.recorded) this.#forgetRecord(delivery)
  }

  #forgetRecord({ channel, sequence }: Delivery): void {
    // A record that remains is never read again.
    this.background(this.#parts.keyedRecords.remove(this.#recordKey(channel, sequence)))
  }

  /**
   * Returns the message after a receive without an ack: to the queue, or to the dead-letter queue.
   * @throws BrokerError ENGINE_UNAVAILABLE; with `reject` NO_DEAD_LETTER_QUEUE, and the errors of a send
   */
  async returnMessage(delivery: Delivery, options?: NackOptions): Promise<void> {
    const { channelSettings, connection, counterTable } = this.#parts
    if (hasExpired(this.#parts, delivery)) return this.expire(delivery)
    const { deadLetterQueue, reason, delayMs } = returnOf(channelSettings, receivedMessageOf(delivery), options)
    if (reason === 'rejected') return this.#moveToDeadLetters(delivery, deadLetterQueue, reason)
    if (deadLetterQueue !== '') return this.bury(delivery, deadLetterQueue)
    await connection.request(delivery.ackSubject, delayMs === 0 ? NAK : nakAfter(delayMs))
    if (delayMs > 0) this.#gauges.retriesIn(delivery.channel, delayMs)
    counterTable.sinceOpen.retried++
    if (this.#counts.size >= MAX_REMEMBERED) this.#counts.clear()
    this.#counts.set(this.#recordKey(delivery.channel, delivery.sequence), delivery.receiveCount)
  }

  /** Moves a message that was received too often to its dead-letter queue; later if that is full. */
  async bury(delivery: Delivery, deadLetterQueue: string): Promise<void> {
    try {
      await this.#moveToDeadLetters(delivery, deadLetterQueue, 'max_receive_count')
    } catch (error) {
      await this.#postpone(delivery, error)
    }
  }

  async #moveToDeadLetters(delivery: Delivery, deadLetterQueue: string, reason: DeadLetterReason): Promise<void> {
    await this.#deadLetters.publish(delivery, deadLetterQueue, reason)
    await this.remove(delivery)
    this.#parts.counterTable.deadLettered(delivery.channel.incarnation)
  }

  /** Leaves a message that cannot move in its queue for some time. @throws BrokerError ENGINE_UNAVAILABLE */
  async #postpone(delivery: Delivery, error: unknown): Promise<void> {
    if (!isRefusal(error)) throw error
    const retryMs = this.#stays(delivery.channel, error) ? DEAD_LETTER_RETRY_MS : DEAD_LETTER_REFUSED_MS
    await this.#parts.connection.request(delivery.ackSubject, nakAfter(retryMs))
  }

  /** Reports a refusal that an operator must correct; returns whether it may pass without. */
  #stays(channel: StoredChannel, error: BrokerError): boolean {
    if (error.code === 'QUEUE_FULL' || error.code === 'CHANNEL_LIMIT') return true
    const shown = JSON.stringify(channel.name)
    const message = `a message of ${shown} cannot move to its dead-letter queue and stays in its queue: ${error.message}`
    this.#refused.report(`${channel.incarnation} ${error.code}`, message)
    return false
  }

  /** Ends an expired message that was delivered to this node. */
  async expire(delivery: Delivery): Promise<void> {
    try {
      await this.#expire(delivery)
    } catch (error) {
      await this.#postpone(delivery, error)
    }
  }

  /** Ends an expired message that waits; returns false if it is gone, or must stay. */
  async expireStored(channel: StoredChannel, { sequence, data }: StoredMessage): Promise<boolean> {
    const record = decodeQueueMessage(data)
    if (!record) return this.#gauges.removeOne(channel, sequence)
    const receiveCount = this.receivesOf(channel, sequence)
    try {
      return await this.#expire({ channel, record, sequence, receiveCount, size: messageSize(record.message) })
    } catch (error) {
      if (!isRefusal(error)) throw error
      this.#stays(channel, error)
      return false
    }
  }

  /** Removes an expired message, or moves it to the dead-letter queue, by the settings of its queue. */
  async #expire(message: DeadLetter): Promise<boolean> {
    const { channelSettings, counterTable } = this.#parts
    const { channel, record, sequence } = message
    const { deadLetterQueue, message: content } = record
    const target = expiredTarget(channelSettings, {
      channel: channel.name,
      deadLetterQueue,
      isDeadLetter: isDeadLetter(content.tags),
    })
    if (target !== '') await this.#deadLetters.publish(message, target, 'expired')
    // Deleted, not acked: if several nodes find it expired, only the one that removes it counts it.
    if (!(await this.#gauges.removeOne(channel, sequence))) return false
    if (target === '') counterTable.expired(channel.incarnation, 1)
    else counterTable.deadLettered(channel.incarnation)
    return true
  }

  /** Returns a message that had no receiver, without counting a receive. */
  async returnUncounted(delivery: Delivery): Promise<void> {
    const key = this.#recordKey(delivery.channel, delivery.sequence)
    await this.#parts.keyedRecords.put(key, String(delivery.uncounted + 1))
    await this.#parts.connection.request(delivery.ackSubject, NAK)
  }

  /** Postpones a message that arrived before its due time. */
  async park(
    channel: StoredChannel,
    sequence: number,
    deliveries: number,
    subject: string,
    forMs: number,
  ): Promise<void> {
    // Without a record, a delayed message counts as delivered early once, so only another number needs a
    // record.
    if (deliveries !== 1) await this.#parts.keyedRecords.put(this.#recordKey(channel, sequence), String(deliveries))
    this.#parts.connection.nc.publish(subject, nakAfter(forMs))
  }

  /** Returns the number of earlier deliveries of a message that were no receives. */
  async uncounted(
    channel: StoredChannel,
    sequence: number,
    deliveries: number,
    delayed: boolean,
  ): Promise<{ uncounted: number; recorded: boolean }> {
    const key = this.#recordKey(channel, sequence)
    const record = await this.#parts.keyedRecords.get(key)
    // Only digits: with an invalid count a message could be received without limit.
    if (record && /^\d{1,15}$/.test(record.text)) return { uncounted: Number(record.text), recorded: true }
    if (!delayed) return { uncounted: 0, recorded: false }
    if (deliveries > 1) return { uncounted: 1, recorded: false }
    // The message was first requested when it was due already.
    await this.#parts.keyedRecords.put(key, '0')
    return { uncounted: 0, recorded: true }
  }

  receivesOf(channel: StoredChannel, sequence: number): number {
    return this.#counts.get(this.#recordKey(channel, sequence)) ?? 0
  }

  #recordKey(channel: StoredChannel, sequence: number): string {
    return this.#parts.subjects.keyedRecord('q', channel.incarnation, sequence)
  }

  /** Runs work without waiting for it. If it fails, the servers deliver the message again. */
  background(work: Promise<void>): void {
    void this.ended(work)
  }

  /** Like {@link background}. Resolves when the work has ended, and never rejects. */
  async ended(work: Promise<void>): Promise<void> {
    this.#running.add(work)
    try {
      await work
    } catch (error) {
      reportFailure(this.#parts.settings.onProblem, 'settling a message', error)
    } finally {
      this.#running.delete(work)
    }
  }

  /** Resolves when no work runs in the background. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running)
  }
}

function isRefusal(error: unknown): error is BrokerError {
  return isBrokerError(error) && error.code !== 'ENGINE_UNAVAILABLE'
}

/** A message that moves to a dead-letter queue. */
type DeadLetter = Pick<Delivery, 'channel' | 'record' | 'sequence' | 'size' | 'receiveCount'>

/** Copies messages to their dead-letter queues. Deduplication prevents a second copy within two minutes. */
export class DeadLetters {
  readonly #parts: Parts
  readonly #sender: QueueSender

  constructor(parts: Parts, sender: QueueSender) {
    this.#parts = parts
    this.#sender = sender
  }

  /** @throws BrokerError QUEUE_FULL, CHANNEL_LIMIT, ENGINE_UNAVAILABLE */
  async publish(message: DeadLetter, target: string, reason: DeadLetterReason): Promise<void> {
    const { record, channel, sequence, size, receiveCount } = message
    const tags = {
      ...record.message.tags,
      dlq_source: channel.name,
      dlq_reason: reason,
      dlq_receive_count: String(receiveCount),
    }
    const { duplicate } = await this.#sender.store(
      target,
      // A dead letter neither expires nor moves again.
      {
        message: { ...record.message, tags },
        dueAt: 0,
        expiresAt: 0,
        maxReceiveCount: 0,
        deadLetterQueue: '',
        origin: undefined,
      },
      `dead ${hash(`${channel.incarnation} ${sequence}`)}`,
    )
    const { storedChannels, counterTable } = this.#parts
    const stored = storedChannels.get('queues', target)
    if (stored && !duplicate) counterTable.received(stored.incarnation, 1, size)
  }
}
