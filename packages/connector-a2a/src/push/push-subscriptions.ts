import type { NewWebhookSubscription, WebhookMessageSource, WebhookSubscription } from '@signalbox/broker-core/ports'

/** The subscriptions of webhooks: the port through which the server provides them for push notifications. */
export interface PushSubscriptions {
  /** Serves the subscriptions of a source from now on, until the returned function is called. */
  registerSource(source: WebhookMessageSource): () => void
  /** Checks a subscription as its creation does, without creating it. @throws WebhookFailure */
  check(input: NewWebhookSubscription): Promise<void>
  /** Creates a subscription under an id that the caller has derived. @throws WebhookFailure */
  put(id: string, input: NewWebhookSubscription): Promise<WebhookSubscription>
  /** Returns a subscription; undefined if there is none. */
  find(id: string): Promise<WebhookSubscription | undefined>
  /** Returns the subscriptions to a channel, oldest first. */
  ofChannel(channel: string): readonly WebhookSubscription[]
  /** Ends a subscription of an owner. @throws WebhookFailure */
  delete(id: string, owner: string): Promise<void>
}
