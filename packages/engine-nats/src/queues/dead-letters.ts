import type { Parts } from '../parts.ts'
import { hash } from '../subjects.ts'
import type { Delivery } from './delivery.ts'
import type { QueueSender } from './queue-sender.ts'

/** Copies messages to their dead-letter queues. Deduplication prevents a second copy within two minutes. */
export class DeadLetters {
  readonly #parts: Parts
  readonly #sender: QueueSender

  constructor(parts: Parts, sender: QueueSender) {
    this.#parts = parts
    this.#sender = sender
  }

  /** @throws BrokerError QUEUE_FULL, CHANNEL_LIMIT, ENGINE_UNAVAILABLE */
  async publish(delivery: Delivery, receiveCount: number): Promise<void> {
    const { record, channel, sequence } = delivery
    const tags = {
      ...record.message.tags,
      dlq_source: channel.name,
      dlq_reason: 'max_receive_count',
      dlq_receive_count: String(receiveCount),
    }
    const target = record.deadLetterQueue
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
    if (stored && !duplicate) counterTable.received(stored.incarnation, 1, delivery.size)
  }
}
