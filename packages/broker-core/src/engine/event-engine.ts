import type { Message, OutgoingMessage } from '../message.ts'
import type { Subscription } from './subscription.ts'

export interface SubscribeOptions {
  /**
   * The consumer group: each message goes to one subscriber of the group. Without a group, the subscriber gets every
   * message.
   */
  readonly group?: string | undefined
  /** Closes the subscription when aborted. */
  readonly signal?: AbortSignal | undefined
}

/** The options of a subscription to an events store. */
export interface EventsStoreSubscribeOptions extends SubscribeOptions {
  /**
   * `true` stores the position of `group`, which is required: the position survives the group's subscribers and
   * restarts. A group with and one without `durable` are different groups, also with the same name. @default false
   */
  readonly durable?: boolean
}

export interface EventEngine {
  /** Delivers the event to the current subscribers, without storing it. @throws BrokerError CHANNEL_LIMIT */
  publish(channel: string, message: OutgoingMessage): Promise<void>
  /**
   * Subscribes to a channel, or to several by a pattern: the token `*` matches one token, `>` as the last token matches
   * one or more. Wildcards never match the broker's own channels. Calls the listener in the order of publishing. The
   * listener must not block: it buffers, and handles a full buffer. Subscribing to a channel by its name creates the
   * channel.
   * @throws BrokerError CHANNEL_LIMIT
   */
  subscribe(pattern: string, options: SubscribeOptions, listener: (event: Message) => void): Promise<Subscription>
}
