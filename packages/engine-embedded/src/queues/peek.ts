import type { PeekOptions, QueueMessage } from '@signalbox/broker-core/engine'
import { messageSize } from '@signalbox/broker-core/engine'

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
  { maxMessages, maxBytes, fromSequence = 1 }: PeekOptions,
): QueueMessage[] {
  const known = fromSequence === 1 ? queue?.inMemory(maxMessages, now) : undefined
  if (known) return withinBytes(known, maxBytes)
  const messages: QueueMessage[] = []
  const limit = Math.min(PAGE, maxMessages + (queue?.heldCount ?? 0))
  let bytes = 0
  for (let after = fromSequence - 1; ;) {
    const page = reader.page(channel, after, limit)
    for (const { sequence, expiresAt, message, size } of page) {
      after = sequence
      if (queue?.isHeld(sequence) || isExpired(expiresAt, now)) continue
      const whole = message ?? reader.one(channel.id, channel.name, sequence)?.message
      if (!whole) continue
      bytes += size
      if (maxBytes !== undefined && messages.length > 0 && bytes > maxBytes) return messages
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

/** Returns as many messages as fit into `maxBytes`, at least one. */
function withinBytes(messages: QueueMessage[], maxBytes: number | undefined): QueueMessage[] {
  if (maxBytes === undefined) return messages
  let bytes = 0
  const end = messages.findIndex((message, i) => (bytes += messageSize(message)) > maxBytes && i > 0)
  return end < 0 ? messages : messages.slice(0, end)
}
