import type { EncodedQueueMessage } from '@signalbox/broker-core/engine'
import { decodeQueueMessage, messageSize } from '@signalbox/broker-core/engine'
import type { Msg } from '@nats-io/transport-node'

import { reportFailure } from '../background.ts'
import type { StoredChannel } from '../channels/stored-channel.ts'
import type { Parts } from '../parts.ts'
import type { AckSubject } from './ack-subject.ts'
import { parseAckSubject } from './ack-subject.ts'
import type { Delivery } from './delivery.ts'
import type { Disposal } from './disposal.ts'

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
  admit(message: Msg): Delivery | Promise<Delivery | undefined> | undefined {
    const subject = message.reply ?? ''
    const ack = parseAckSubject(subject)
    const record = decodeQueueMessage(message.data)
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
      const { maxReceiveCount, deadLetterQueue } = record
      if (maxReceiveCount === 0 || deadLetterQueue === '' || receiveCount <= maxReceiveCount) return delivery
      // The node of its last receive died, or its dead-letter queue was full.
      await this.#disposal.bury(delivery, maxReceiveCount)
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
