import type { EncodedQueueMessage, QueueMessage } from '@signalbox/broker-core/engine'
import { toQueueMessage } from '@signalbox/broker-core/engine'

import type { StoredChannel } from '../channels/stored-channel.ts'

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
