import type { PeekOptions, QueueMessage } from '@signalbox/broker-core/engine'
import { decodeQueueMessage, messageSize, ResultSize } from '@signalbox/broker-core/engine'

import type { StoredChannel } from '../channels/stored-channel.ts'
import type { Parts } from '../parts.ts'
import type { Disposal } from './disposal.ts'
import type { QueueGauges } from './queue-gauges.ts'
import { queueMessageOf } from './delivery.ts'

/** Reads the messages of a queue without its consumer. */
export class QueueReader {
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
    if (messages - delayed - this.#parts.counters.leased(channel.incarnation) <= 0) return undefined
    if (delayed === 0 && expired === 0) return firstStoredAt
    return (await this.peek(channel, { maxMessages: 1 }))[0]?.timestamp
  }

  async peek(channel: StoredChannel, options: PeekOptions): Promise<readonly QueueMessage[]> {
    const { maxMessages, fromSequence = 1, ...limit } = options
    const { messages, subjects, clock } = this.#parts
    const { messages: held, lastSequence } = await this.#gauges.read(channel)
    if (held === 0) return []
    const shown: QueueMessage[] = []
    const result = new ResultSize(limit)
    const filter = subjects.all(channel.incarnation)
    await messages.forward(channel.stream, filter, fromSequence, lastSequence, maxMessages, (stored) => {
      const record = decodeQueueMessage(stored.data)
      const now = clock.now()
      if (!record || record.dueAt > now || (record.expiresAt > 0 && record.expiresAt <= now)) return true
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
