import type { OutgoingMessage, QueueDelivery, QueueMessage } from '../message.ts'
import type { ResultLimit } from './result-size.ts'

export interface QueueSend extends OutgoingMessage {
  /** The time until the message is visible, in ms; 0 means immediately. */
  readonly delayMs: number
  /** The time from the send until the message expires, in ms; 0 means never. A delay does not extend it. */
  readonly expirationMs: number
  /**
   * Receives before the message moves to `deadLetterQueue`; 0 means unlimited. Has no effect without a `deadLetterQueue`.
   */
  readonly maxReceiveCount: number
  /** The name of the dead-letter queue; empty if there is none. */
  readonly deadLetterQueue: string
  /**
   * The id for deduplication: within two minutes, also across a restart, the queue stores only the first send with the
   * same id.
   */
  readonly deduplicationId?: string | undefined
}

export interface SendResult {
  /** The message's id. For a duplicate, the id of the first send. */
  readonly id: string
  readonly sequence: number
  readonly duplicate: boolean
}

export interface ReceiveOptions extends ResultLimit {
  /** The maximum number of messages, at least 1. */
  readonly maxMessages: number
  /** The maximum time to wait for a first message, in ms; 0 does not wait. */
  readonly waitMs: number
  /** The duration of the lease, in ms; more than 0. */
  readonly leaseMs: number
  /** The ClientID of the receiver. Only the same ClientID may settle the delivery. */
  readonly clientId: string
  readonly signal?: AbortSignal | undefined
}

export interface PeekOptions extends ResultLimit {
  /** The maximum number of messages, at least 1. */
  readonly maxMessages: number
  /** The first sequence to show, at least 1. @default the first message of the queue */
  readonly fromSequence?: number | undefined
}

export interface SettleResult {
  /** The number of receipts whose settlement is in effect, by this call or by an earlier one of the same kind. */
  readonly settled: number
  /**
   * Receipts for which the call changed nothing: unknown, settled in the other way, of another client, or with an expired
   * lease.
   */
  readonly lost: readonly string[]
}

export interface QueueEngine {
  /** Stores a message; resolves when it is durable. @throws BrokerError QUEUE_FULL, CHANNEL_LIMIT */
  send(channel: string, message: QueueSend): Promise<SendResult>
  /** Stores all messages or none; resolves when they are durable. @throws BrokerError QUEUE_FULL, CHANNEL_LIMIT */
  sendBatch(channel: string, messages: readonly QueueSend[]): Promise<readonly SendResult[]>
  /**
   * Leases up to `maxMessages` messages that are due, in FIFO order, as soon as there is one. Resolves with an empty
   * list when `waitMs` passes without a message, also if the queue does not exist. Receivers that wait are served in
   * the order of their calls. Aborting the signal returns messages that were already leased to their positions, without
   * counting a receive.
   */
  receive(channel: string, options: ReceiveOptions): Promise<readonly QueueDelivery[]>
  /**
   * Removes the messages permanently; resolves when the removal is durable. Until the end of the lease a repeated `ack`
   * or `nack` of a receipt has the result of the first one, also if its answer was lost; the other of the two, and
   * `extend`, then report the receipt as lost. An engine that cannot know whether an earlier call was applied throws.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  ack(receipts: readonly string[], clientId: string): Promise<SettleResult>
  /**
   * Rejects the messages: each returns to its position immediately. This counts as a receive: after `maxReceiveCount`
   * receives the message moves to its dead-letter queue, with the tags `dlq_source`, `dlq_reason` and
   * `dlq_receive_count`, and does not expire there.
   */
  nack(receipts: readonly string[], clientId: string): Promise<SettleResult>
  /** Sets the end of the leases to `leaseMs` ms from now. */
  extend(receipts: readonly string[], clientId: string, leaseMs: number): Promise<SettleResult>
  /**
   * Returns the messages that a receive would return next, and leaves them unchanged. Empty if the queue does not
   * exist.
   */
  peek(channel: string, options: PeekOptions): Promise<readonly QueueMessage[]>
  /**
   * Returns the time at which the oldest waiting message was sent, in ms since the epoch; undefined if no message waits.
   * Must not read bodies in the usual case. An engine whose `peek` shows leased messages may return one of those while
   * others wait.
   */
  oldestWaiting(channel: string): Promise<number | undefined>
  /** Removes every message that is not leased, including delayed ones; resolves with the number of removed messages. */
  purge(channel: string): Promise<number>
}
