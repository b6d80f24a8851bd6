import type { Message } from '../message.ts'
import type { WebhookFormat } from './webhook-format.ts'
import type { RUN_SOURCE } from './webhooks.ts'

/** A message of a connector's source. */
export interface SourcedMessage {
  readonly message: Message
  /** A stable part of the delivery id. */
  readonly name: string
  /** The position after this message. It is stored when the endpoint has accepted the message. */
  readonly position: string
}

/** A subscription to a connector's source. */
export interface SourceSubscription {
  readonly id: string
  readonly owner: string
  readonly account: string
  readonly channel: string
  /** The notes of the connector that created the subscription; empty without any. */
  readonly notes: string
  /** The position of the last message that the endpoint has accepted, or the one that the subscription began with. */
  readonly position: string | undefined
}

/** A source of messages that a connector registers. Its messages are delivered in order. */
export interface WebhookMessageSource {
  readonly type: typeof RUN_SOURCE
  /** The form of its deliveries. */
  readonly format: WebhookFormat
  /** The most subscriptions of one owner, and to one channel. */
  readonly maxPerOwner: number
  readonly maxPerChannel: number
  /** Returns `true` if the owner may have messages of the channel. Called before each attempt. */
  permits(owner: string, channel: string): boolean
  /**
   * Returns the messages after a position. The subscription is removed when the last one was delivered. After an error,
   * the source is opened again.
   */
  open(
    subscription: SourceSubscription,
    options: { readonly signal: AbortSignal; readonly failed: (error: unknown) => void },
  ): AsyncIterable<SourcedMessage>
}
