import type { StoredChannel } from '../channels/stored-channel.ts'
import type { QueueRecord } from './queue-record.ts'

/** A message that the servers handed to this node, and that they keep from others until it is settled or its time is over. */
export interface Delivery {
  readonly channel: StoredChannel
  readonly record: QueueRecord
  readonly sequence: number
  /** Tells this delivery from every other one of the queue. */
  readonly delivery: number
  readonly ackSubject: string
  /** When the message was stored, milliseconds since the epoch. */
  readonly timestamp: number
  /** Receives, this one included. */
  readonly receiveCount: number
  /** Deliveries that were no receives: early ones of delayed messages, and what nobody took. */
  readonly uncounted: number
  /** True when a keyed record holds its uncounted deliveries. */
  readonly recorded: boolean
  readonly size: number
  readonly arrivedAt: number
}
