import type { StoredChannel } from '../channels/stored-channel.ts'
import type { QueueRecord } from './queue-record.ts'

/**
 * A message that the servers delivered to this node. They withhold it from others until it is settled or its
 * time is over.
 */
export interface Delivery {
  readonly channel: StoredChannel
  readonly record: QueueRecord
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
