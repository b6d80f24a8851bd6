import { isBrokerError } from '@signalbox/broker-core/engine'

import type { StoredChannel } from '../channels/stored-channel.ts'
import { runInBackground } from '../background.ts'
import type { Parts } from '../parts.ts'
import { ReportOnce } from '../report-once.ts'
import { ACK, NAK, nakAfter } from './ack-subject.ts'
import type { DeadLetters } from './dead-letters.ts'
import type { Delivery } from './delivery.ts'
import type { QueueGauges } from './queue-gauges.ts'

/** A message whose dead-letter queue has no room stays where it is, and is tried again after this long. */
const DEAD_LETTER_RETRY_MS = 5_000
/** As {@link DEAD_LETTER_RETRY_MS}, for one that somebody must do something about first. */
const DEAD_LETTER_REFUSED_MS = 60_000

/** Receive counts of messages that came back, remembered for looking at them. */
const MAX_REMEMBERED = 10_000

/** What becomes of a delivery: gone for good, back to its queue, or on to the dead-letter queue. */
export class Disposal {
  readonly #parts: Parts
  readonly #gauges: QueueGauges
  readonly #deadLetters: DeadLetters
  readonly #refused: ReportOnce
  readonly #counts = new Map<string, number>()

  constructor(parts: Parts, gauges: QueueGauges, deadLetters: DeadLetters) {
    this.#parts = parts
    this.#refused = new ReportOnce(parts.settings.onProblem)
    this.#gauges = gauges
    this.#deadLetters = deadLetters
  }

  /** Removes the message; resolves when that is durable. @throws BrokerError ENGINE_UNAVAILABLE */
  async remove(delivery: Delivery): Promise<void> {
    await this.#parts.connection.request(delivery.ackSubject, ACK)
    this.#counts.delete(this.#recordKey(delivery.channel, delivery.sequence))
    if (delivery.recorded) this.#forgetRecord(delivery)
  }

  #forgetRecord({ channel, sequence }: Delivery): void {
    // A record that stays is never read again.
    this.background(this.#parts.keyedRecords.remove(this.#recordKey(channel, sequence)))
  }

  /** After a receive that did not end in an ack. @throws BrokerError ENGINE_UNAVAILABLE */
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

  /** Moves the message to its dead-letter queue, now or, when that has no room, later. */
  async bury(delivery: Delivery, receiveCount: number): Promise<void> {
    try {
      await this.#deadLetters.publish(delivery, receiveCount)
    } catch (error) {
      if (!isBrokerError(error) || error.code === 'ENGINE_UNAVAILABLE') throw error
      const mayPass = error.code === 'QUEUE_FULL' || error.code === 'CHANNEL_LIMIT'
      if (!mayPass) {
        const shown = JSON.stringify(delivery.channel.name)
        const message = `a message of ${shown} cannot move to its dead-letter queue and stays where it is: ${error.message}`
        this.#refused.report(`${delivery.channel.incarnation} ${error.code}`, message)
      }
      const retryMs = mayPass ? DEAD_LETTER_RETRY_MS : DEAD_LETTER_REFUSED_MS
      await this.#parts.connection.request(delivery.ackSubject, nakAfter(retryMs))
      return
    }
    await this.remove(delivery)
    this.#parts.counterTable.change(delivery.channel.incarnation, (counts) => counts.deadLettered++)
  }

  async expire(delivery: Delivery): Promise<void> {
    // Deleted, not acked: of several that come upon it, the one that removes it counts it.
    const removed = await this.#gauges.removeOne(delivery.channel, delivery.sequence)
    if (removed) this.#parts.counterTable.change(delivery.channel.incarnation, (counts) => counts.expired++)
  }

  /** Gives back what nobody received: it does not count. */
  async returnUncounted(delivery: Delivery): Promise<void> {
    const key = this.#recordKey(delivery.channel, delivery.sequence)
    await this.#parts.keyedRecords.put(key, String(delivery.uncounted + 1))
    await this.#parts.connection.request(delivery.ackSubject, NAK)
  }

  /** Puts off a message that came before its time. */
  async park(
    channel: StoredChannel,
    sequence: number,
    deliveries: number,
    subject: string,
    forMs: number,
  ): Promise<void> {
    // One early delivery is what every delayed message is taken to have had, so only more are worth a record.
    if (deliveries !== 1) await this.#parts.keyedRecords.put(this.#recordKey(channel, sequence), String(deliveries))
    this.#parts.connection.nc.publish(subject, nakAfter(forMs))
  }

  /** Deliveries of a message that was delivered before which were no receives. */
  async uncounted(
    channel: StoredChannel,
    sequence: number,
    deliveries: number,
    delayed: boolean,
  ): Promise<{ uncounted: number; recorded: boolean }> {
    const key = this.#recordKey(channel, sequence)
    const record = await this.#parts.keyedRecords.get(key)
    // Only digits: a count that is no number would let a message be received for ever.
    if (record && /^\d{1,15}$/.test(record.text)) return { uncounted: Number(record.text), recorded: true }
    if (!delayed) return { uncounted: 0, recorded: false }
    if (deliveries > 1) return { uncounted: 1, recorded: false }
    // Nobody asked for it before it was due.
    await this.#parts.keyedRecords.put(key, '0')
    return { uncounted: 0, recorded: true }
  }

  receivesOf(channel: StoredChannel, sequence: number): number {
    return this.#counts.get(this.#recordKey(channel, sequence)) ?? 0
  }

  #recordKey(channel: StoredChannel, sequence: number): string {
    return this.#parts.subjects.keyedRecord('q', channel.incarnation, sequence)
  }

  /** Runs what nobody waits for. A message that it fails for comes back by itself. */
  background(work: Promise<void>): void {
    runInBackground(this.#parts.settings.onProblem, 'settling a message', work)
  }
}
