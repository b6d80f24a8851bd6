import type { ChannelType } from '../channel.ts'
import type { OutgoingMessage, Reply, RequestMessage } from '../message.ts'
import type { SubscribeOptions } from './event-engine.ts'
import type { Subscription } from './subscription.ts'

export type RequestType = Extract<ChannelType, 'commands' | 'queries'>

export interface RequestOptions {
  /** The maximum time to wait for the answer, in ms; more than 0. */
  readonly timeoutMs: number
  /**
   * `true` rejects with NO_SUBSCRIBER immediately if all known nodes report no subscriber, instead of waiting for one.
   * Creates no channel. @default false
   */
  readonly onlyIfSubscribed?: boolean
  /** Withdraws the request when aborted, and aborts the signal of its handler. */
  readonly signal?: AbortSignal
  /**
   * Aborted when the caller can no longer get the answer. A request that no subscriber has received is dropped and
   * rejects with the signal's reason; one that a subscriber has received continues.
   */
  readonly callerGone?: AbortSignal
}

export interface RequestEngine {
  /**
   * Delivers the request to one subscriber of each group; resolves with the first reply. While the request is
   * undelivered and unanswered, a new subscriber gets it too.
   * @throws BrokerError NO_SUBSCRIBER, REQUEST_TIMEOUT, CHANNEL_LIMIT
   */
  request(type: RequestType, channel: string, message: OutgoingMessage, options: RequestOptions): Promise<Reply>
  /**
   * Answers requests. Subscribers without a group form one group. If a handler throws, the request is rejected with a
   * general text. Subscribing creates the channel.
   * @throws BrokerError CHANNEL_LIMIT
   */
  serve(
    type: RequestType,
    channel: string,
    options: SubscribeOptions,
    handler: (request: RequestMessage) => Promise<Reply>,
  ): Promise<Subscription>
}
