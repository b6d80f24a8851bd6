import { isBrokerError } from '@signalbox/broker-core/engine'

import type { StoredChannel } from '../channels/stored-channel.ts'
import { reportFailure } from '../background.ts'
import type { Parts } from '../parts.ts'
import { ReportOnce } from '../report-once.ts'
import { ACK, NAK, nakAfter } from './ack-subject.ts'
import type { DeadLetters } from './dead-letters.ts'
import type { Delivery } from './delivery.ts'
import type { QueueGauges } from './queue-gauges.ts'

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
   * Returns the message after a receive without an ack: to the queue, or to the dead-letter queue. @throws
   * BrokerError ENGINE_UNAVAILABLE
   */
  async giveBack(delivery: Delivery): Promise<void> {
    const { expiresAt, maxReceiveCount, deadLetterQueue } = delivery.record
    const { clock } = this.#parts
    if (expiresAt > 0 && expiresAt <= clock.now() && !clock.isSkewed) return this.expire(delivery)
    if (maxReceiveCount > 0 && deadLetterQueue !== '' && delivery.receiveCount >= maxReceiveCount) {
      return this.bury(delivery, delivery.receiveCount)
    }
    await this.#parts.connection.request(delivery.ackSubject, NAK)
    if (this.#counts.size >= MAX_REMEMBERED) this.#counts.clear()
    this.#counts.set(this.#recordKey(delivery.channel, delivery.sequence), delivery.receiveCount)
  }

  /** Moves the message to its dead-letter queue; later if that is full. */
  async bury(delivery: Delivery, receiveCount: number): Promise<void> {
    try {
      await this.#deadLetters.publish(delivery, receiveCount)
    } catch (error) {
      if (!isBrokerError(error) || error.code === 'ENGINE_UNAVAILABLE') throw error
      const mayPass = error.code === 'QUEUE_FULL' || error.code === 'CHANNEL_LIMIT'
      if (!mayPass) {
        const shown = JSON.stringify(delivery.channel.name)
        const message = `a message of ${shown} cannot move to its dead-letter queue and stays in its queue: ${error.message}`
        this.#refused.report(`${delivery.channel.incarnation} ${error.code}`, message)
      }
      const retryMs = mayPass ? DEAD_LETTER_RETRY_MS : DEAD_LETTER_REFUSED_MS
      await this.#parts.connection.request(delivery.ackSubject, nakAfter(retryMs))
      return
    }
    await this.remove(delivery)
    this.#parts.counterTable.deadLettered(delivery.channel.incarnation)
  }

  async expire(delivery: Delivery): Promise<void> {
    // Deleted, not acked: if several nodes find it expired, only the one that removes it counts it.
    const removed = await this.#gauges.removeOne(delivery.channel, delivery.sequence)
    if (removed) this.#parts.counterTable.expired(delivery.channel.incarnation, 1)
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
