/** The channel types whose messages can be delivered. */
export type PushType = 'events_store' | 'events' | 'queues'

/** A subscription to create. */
export interface NewPushSubscription {
  /** The verified ClientID of the caller. */
  readonly owner: string
  /** The account that limits count. */
  readonly account: string
  readonly type: PushType
  readonly channel: string
  /** The URL that gets the events. */
  readonly endpoint: string
  /** The name of one of `CE_PUSH_FORMATS`. */
  readonly format: string
  /** A CESQL expression. */
  readonly filter?: string
  readonly ordered?: boolean
  readonly start?: 'new' | 'first' | number
  readonly secret?: string
}

/** A subscription as its owner sees it. */
export interface PushSubscription {
  readonly id: string
  readonly type: PushType
  readonly channel: string
  readonly endpoint: string
  readonly format: string
  readonly filter?: string
  readonly ordered: boolean
  readonly state: 'active' | 'failing' | 'paused' | 'disabled'
  readonly reason?: string
  readonly createdMs: number
  /** The first sequence of an events store that is not delivered. */
  readonly next?: number
  readonly deadLetterQueue: string
}

export interface CreatedPushSubscription {
  readonly subscription: PushSubscription
  /** The generated secret; `undefined` if the caller gave one. */
  readonly secret?: string
}

/**
 * The subscriptions of webhooks: the port through which the server provides them. Calls reject with errors that have a
 * `code` of {@link PushErrorCode} and `details`, or with Broker errors.
 */
export interface PushSubscriptions {
  /** Creates a subscription. The connector has checked that the caller may subscribe to the channel. */
  create(input: NewPushSubscription): Promise<CreatedPushSubscription>
  /** Returns the subscriptions of an owner. */
  list(owner: string): readonly PushSubscription[]
  /** Returns a subscription of an owner. */
  get(id: string, owner: string): Promise<PushSubscription>
  /** Replaces the secret of a subscription by a generated one, and returns it. For a time, both sign deliveries. */
  rotateSecret(id: string, owner: string): Promise<string>
  /** Ends a subscription of an owner. */
  delete(id: string, owner: string): Promise<PushSubscription>
}
