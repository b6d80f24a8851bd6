import type { PeekOptions, QueueMessage, ResultLimit } from '@signalbox/broker-core/engine'
import { messageSize, ResultSize } from '@signalbox/broker-core/engine'

import type { LiveChannel } from '../channel-registry.ts'
import type { Queue } from './queue.ts'
import { isExpired } from './queue.ts'
import type { QueueReader } from './queue-reader.ts'

/** The maximum number of messages read at once. */
const PAGE = 128

/**
 * Returns the first messages of a queue, or from a sequence on, that are neither leased nor expired, from memory if
 * possible. `queue` is
 * undefined if the queue has no data in memory.
 */
export function peekQueue(
  reader: QueueReader,
  channel: LiveChannel,
  queue: Queue | undefined,
  now: number,
  { maxMessages, fromSequence = 1, ...bound }: PeekOptions,
): QueueMessage[] {
  const known = fromSequence === 1 ? queue?.inMemory(maxMessages, now) : undefined
  if (known) return withinBytes(known, bound)
  const messages: QueueMessage[] = []
  const limit = Math.min(PAGE, maxMessages + (queue?.heldCount ?? 0))
  const result = new ResultSize(bound)
  for (let after = fromSequence - 1; ;) {
    const page = reader.page(channel, after, limit)
    for (const { sequence, expiresAt, message, size } of page) {
      after = sequence
      if (queue?.isHeld(sequence) || isExpired(expiresAt, now)) continue
      if (!result.mayFit(size)) return messages
      const whole = message ?? reader.one(channel.id, channel.name, sequence)?.message
      if (!whole) continue
      if (!result.add(whole, size)) return messages
      if (messages.push(whole) === maxMessages) return messages
    }
    if (page.length < limit) return messages
  }
}

/** Returns when the first message that is neither leased nor expired was sent, without reading bodies. */
export function oldestWaiting(
  reader: QueueReader,
  channel: LiveChannel,
  queue: Queue | undefined,
  now: number,
): number | undefined {
  const [known] = queue?.inMemory(1, now) ?? []
  if (known) return known.timestamp
  for (let after = 0; ;) {
    const page = reader.times(channel, after, PAGE)
    for (const [sequence, timestamp, expiresAt] of page) {
      after = sequence
      if (!queue?.isHeld(sequence) && !isExpired(expiresAt, now)) return timestamp
    }
    if (page.length < PAGE) return undefined
  }
}

/** Returns the messages that fit into the result, at least one. */
function withinBytes(messages: QueueMessage[], limit: ResultLimit): QueueMessage[] {
  if (limit.maxBytes === undefined) return messages
  const result = new ResultSize(limit)
  const end = messages.findIndex((message) => !result.add(message, messageSize(message)))
  return end < 0 ? messages : messages.slice(0, end)
}
