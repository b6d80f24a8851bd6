import { messageSize } from '@signalbox/broker-core/engine'
import type { Msg } from '@nats-io/transport-node'

import { reportFailure } from '../background.ts'
import type { StoredChannel } from '../channels/stored-channel.ts'
import type { Parts } from '../parts.ts'
import type { AckSubject } from './ack-subject.ts'
import { parseAckSubject } from './ack-subject.ts'
import type { Delivery } from './delivery.ts'
import type { Disposal } from './disposal.ts'
import type { QueueRecord } from './queue-record.ts'
import { readRecord } from './queue-record.ts'

/** What a message's deliveries were, this one included. */
type Counts = Pick<Delivery, 'receiveCount' | 'uncounted' | 'recorded'>

/** How long a message that is not due is put off by a node whose clock is wrong, in milliseconds. */
const SKEWED_MS = 5_000

const FIRST: Counts = { receiveCount: 1, uncounted: 0, recorded: false }

/** Finds out which of a queue's deliveries are for a receiver, and deals with those that are not. */
export class DeliveryAdmission {
  readonly #parts: Parts
  readonly #channel: StoredChannel
  readonly #disposal: Disposal

  constructor(parts: Parts, channel: StoredChannel, disposal: Disposal) {
    this.#parts = parts
    this.#channel = channel
    this.#disposal = disposal
  }

  /** Undefined for what came too early or too late, is dead, or is no message of this broker. Never rejects. */
  admit(message: Msg): Delivery | Promise<Delivery | undefined> | undefined {
    const subject = message.reply ?? ''
    const ack = parseAckSubject(subject)
    const record = readRecord(message.data)
    if (!ack || !record) {
      this.#parts.connection.nc.publish(subject, '+TERM')
      return undefined
    }
    const { clock } = this.#parts
    const now = clock.now()
    const { dueAt, expiresAt } = record
    if (expiresAt > 0 && expiresAt <= now && !clock.isSkewed) {
      this.#disposal.background(this.#disposal.expire(this.#delivery(ack, record, subject, FIRST)))
      return undefined
    }
    if (dueAt > now) {
      const wakeAt = expiresAt > 0 ? Math.min(dueAt, expiresAt) : dueAt
      const { sequence, deliveries } = ack
      // Not for a time that a clock set wrong may say.
      const forMs = clock.isSkewed ? Math.min(SKEWED_MS, wakeAt - now) : wakeAt - now
      this.#disposal.background(this.#disposal.park(this.#channel, sequence, deliveries, subject, forMs))
      return undefined
    }
    if (ack.deliveries === 1 && dueAt === 0) return this.#delivery(ack, record, subject, FIRST)
    return this.#admitAgain(ack, record, subject)
  }

  /** A message that was delivered before: how often it was received says the cluster. */
  async #admitAgain(ack: AckSubject, record: QueueRecord, subject: string): Promise<Delivery | undefined> {
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
      const { maxReceiveCount, deadLetterQueue } = record
      if (maxReceiveCount === 0 || deadLetterQueue === '' || receiveCount <= maxReceiveCount) return delivery
      // Its last receive ended with its node, or its dead-letter queue had no room.
      await this.#disposal.bury(delivery, maxReceiveCount)
    } catch (error) {
      // The message comes back by itself.
      reportFailure(this.#parts.settings.onProblem, 'looking at a message that came again', error)
    }
    return undefined
  }

  #delivery(
    { sequence, delivery, timestamp }: AckSubject,
    record: QueueRecord,
    ackSubject: string,
    counts: Counts,
  ): Delivery {
    const size = messageSize(record.envelope)
    const arrivedAt = Date.now()
    return { channel: this.#channel, record, sequence, delivery, ackSubject, timestamp, size, arrivedAt, ...counts }
  }
}
