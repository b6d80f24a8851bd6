import type { ChannelType } from '../channel.ts'
import { BrokerError } from '../errors.ts'
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
  readonly signal?: AbortSignal | undefined
  /**
   * Aborted when the caller can no longer get the answer. A request that no subscriber has received is dropped and
   * rejects with the signal's reason; one that a subscriber has received continues.
   */
  readonly callerGone?: AbortSignal | undefined
}

/** Answers a command or query of one subscriber. */
export type RequestHandler = (request: RequestMessage) => Promise<Reply>

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
  serve(type: RequestType, channel: string, options: SubscribeOptions, handler: RequestHandler): Promise<Subscription>
}

/** The reply of a handler that threw. The error may contain information that the requester must not see. */
export const FAILED_REPLY: Reply = Object.freeze({
  executed: false,
  error: 'the subscriber failed to handle the request',
  body: new Uint8Array(0),
  metadata: '',
  tags: Object.freeze({}),
})

/** Returns the error of a request that does not wait for a subscriber. */
export function noSubscriber(channel: string, timeoutMs: number): BrokerError {
  return new BrokerError('NO_SUBSCRIBER', `${JSON.stringify(channel)} has no subscriber`, { timeoutMs })
}

/**
 * Returns the error of a request that got no answer.
 * @param delivered `true` if a subscriber received the request
 * @param detail The end of the text for a request that a subscriber received. @default the time
 */
export function unanswered(
  delivered: boolean,
  channel: string,
  timeoutMs: number,
  detail = ` within ${timeoutMs / 1000} s`,
): BrokerError {
  const name = JSON.stringify(channel)
  return delivered
    ? new BrokerError('REQUEST_TIMEOUT', `the subscriber of ${name} did not answer${detail}`, { timeoutMs })
    : new BrokerError('NO_SUBSCRIBER', `${name} had no subscriber for ${timeoutMs / 1000} s`, { timeoutMs })
}
