import type { OutgoingMessage, QueueDelivery, QueueMessage } from '../message.ts'
import type { ResultLimit } from './result-size.ts'

export interface QueueSend extends OutgoingMessage {
  /** The time until the message is visible, in ms; 0 means immediately. */
  readonly delayMs: number
  /** The time from the send until the message expires, in ms; 0 means never. A delay does not extend it. */
  readonly expirationMs: number
  /**
   * Receives before the message moves to its dead-letter queue; 0 leaves it to the queue's retry policy, and means
   * unlimited without one. Has no effect without a dead-letter queue.
   */
  readonly maxReceiveCount: number
  /** The name of the dead-letter queue; empty leaves it to the queue's retry policy. */
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

export interface NackOptions {
  /** The time until the messages are visible again, in ms. @default the delay of the queue's retry policy, or 0 */
  readonly delayMs?: number | undefined
  /** `true` moves the messages to their dead-letter queues now. @default false */
  readonly reject?: boolean | undefined
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

/** Gets the events of all queues of an engine, at once. */
export interface QueueListener {
  /** A lease ended on this node, by any cause: {@link QueueEngine.leased} has decreased. */
  leaseEnded(channel: string): void
  /** The engine closes: further calls reject with ENGINE_UNAVAILABLE. */
  closed(): void
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
   * Rejects the messages, which ends their receipts and counts as a receive. Each returns to its position after the
   * delay of the options, or else of the queue's retry policy; the delay is durable, and the message counts as delayed.
   * After `maxReceiveCount` receives, or at once with `reject`, it moves to its dead-letter queue instead, with the tags
   * `dlq_source`, `dlq_reason` and `dlq_receive_count`, and does not expire there. The values of a message win over those
   * of the policy. The end of a lease by its time-out has the same effect as a nack without options. `settings/retry.ts`
   * has these rules.
   * @throws BrokerError NO_DEAD_LETTER_QUEUE with `reject`; then the call has changed nothing
   */
  nack(receipts: readonly string[], clientId: string, options?: NackOptions): Promise<SettleResult>
  /** Sets the end of the leases to `leaseMs` ms from now. */
  extend(receipts: readonly string[], clientId: string, leaseMs: number): Promise<SettleResult>
  /**
   * Returns the messages that a receive would return next, and leaves them unchanged. Empty if the queue does not
   * exist. An engine whose `peek` shows leased messages may show those that wait for their next attempt too.
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
  /**
   * Returns the number of leased messages, from memory: those of all nodes, or of this node, as the capability
   * `exactConsumerLimits` says.
   */
  leased(channel: string): number
  /**
   * Ends the waits of receivers on this node: each resolves with an empty list, and gets no message that is sent later.
   * @param concerns Returns `true` for the channels whose receivers are meant
   */
  interrupt(concerns: (channel: string) => boolean): void
  /** Adds a listener, for as long as the engine exists. */
  listen(listener: QueueListener): void
}
