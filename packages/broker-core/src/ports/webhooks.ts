/** The channel types whose messages webhooks can deliver. */
export const WEBHOOK_SOURCES = ['events_store', 'events', 'queues'] as const

export type WebhookSource = (typeof WEBHOOK_SOURCES)[number]

/** The type of subscriptions whose messages come from a connector, and not from a channel: the events of agents' runs. */
export const RUN_SOURCE = 'run'

/** The type of a subscription: that of its channel, or `run` for a source that a connector has registered. */
export type WebhookType = WebhookSource | typeof RUN_SOURCE

export const WEBHOOK_STATES = ['active', 'failing', 'paused', 'disabled'] as const

/** `failing`: the last attempt failed, and the message is tried again. */
export type WebhookState = (typeof WEBHOOK_STATES)[number]

/** A webhook subscription to create. */
export interface NewWebhookSubscription {
  /** The verified ClientID of the caller. */
  readonly owner: string
  /** The account that the subscription counts against. @default owner */
  readonly account?: string | undefined
  readonly type: WebhookType
  readonly channel: string
  /** The URL that gets the messages. */
  readonly endpoint: string
  /** The name of a registered format. */
  readonly format: string
  /** A CESQL expression; only messages for which it is true are delivered. Not for queues. @default none */
  readonly filter?: string | undefined
  /** `true` delivers a message only after the one before it was accepted. @default true for an events store */
  readonly ordered?: boolean | undefined
  /** The first entry of an events store: the next one, the first stored one, or a sequence. @default 'new' */
  readonly start?: 'new' | 'first' | number | undefined
  /** The secret that signs deliveries, `whsec_…`. @default a generated one */
  readonly secret?: string | undefined
  /** Notes for the format, which gets them with each delivery. @default none */
  readonly notes?: string | undefined
  /** Notes for the format that are secret, and stored sealed. @default none */
  readonly secretNotes?: string | undefined
  /** The position in a connector's source after which deliveries begin. @default its beginning */
  readonly position?: string | undefined
  /** The time after which the subscription is removed, in ms since the epoch. @default never */
  readonly expiresMs?: number | undefined
}

/** A webhook subscription as its owner and operators see it, without its secret. */
export interface WebhookSubscription {
  readonly id: string
  /** The ClientID of the owner. */
  readonly owner: string
  readonly type: WebhookType
  readonly channel: string
  readonly endpoint: string
  readonly format: string
  readonly filter?: string | undefined
  /** The notes of the connector that created the subscription. */
  readonly notes?: string | undefined
  readonly ordered: boolean
  readonly state: WebhookState
  /** The reason for the states `failing` and `disabled`. */
  readonly reason?: string | undefined
  /** In ms since the epoch, as {@link expiresMs} is. */
  readonly createdMs: number
  readonly expiresMs?: number | undefined
  /** The first sequence of an events store that is not delivered. */
  readonly next?: number | undefined
  /** The queue of messages that could not be delivered. It exists after the first one. */
  readonly deadLetterQueue: string
}

export interface CreatedWebhookSubscription {
  readonly subscription: WebhookSubscription
  /** The generated secret, `whsec_…`; `undefined` if the caller gave one. It is never shown again. */
  readonly secret?: string | undefined
}

/** Webhook subscriptions, as connectors use them. Calls reject with {@link WebhookFailure}, or with Broker errors. */
export interface WebhookSubscriptions {
  /** Creates a subscription. The connector has checked that the caller may subscribe to the channel. */
  create(input: NewWebhookSubscription): Promise<CreatedWebhookSubscription>
  /**
   * Creates the subscription with this id, after the endpoint has agreed to it, or renews it: sets its end and its secret,
   * and delivers again if the endpoint had ended it. Its position stays.
   */
  put(id: string, input: NewWebhookSubscription): Promise<WebhookSubscription>
  /** Returns the subscriptions of an owner. */
  list(owner: string): readonly WebhookSubscription[]
  /** Returns a subscription of an owner. */
  get(id: string, owner: string): Promise<WebhookSubscription>
  /** Replaces the secret of a subscription by a generated one, and returns it. For a time, both sign deliveries. */
  rotateSecret(id: string, owner: string): Promise<string>
  /** Ends a subscription of an owner. */
  delete(id: string, owner: string): Promise<WebhookSubscription>
}

/** The errors of calls on webhook subscriptions, each with its cause. Codes are stable. */
export const WEBHOOK_ERRORS = {
  /** `details.member` names the wrong member of the subscription. */
  SUBSCRIPTION_INVALID: 'a member of the subscription is missing, mistyped or out of range',
  /** Also for a subscription of another owner. */
  SUBSCRIPTION_UNKNOWN: 'no subscription of this owner has this id',
  /** `details.limit`. */
  SUBSCRIPTION_LIMIT: 'the owner has as many subscriptions as allowed',
  ENDPOINT_REFUSED: 'the URL of the endpoint may not be called',
  /** `details.reason`: the class of the failure. */
  ENDPOINT_UNVERIFIED: 'the endpoint did not agree to receive messages of this server',
  /** `details.limit`, `details.retryAfterSeconds`. */
  HANDSHAKE_LIMIT: 'too many endpoints of the owner, or of the same host, did not agree in the last minute',
  WEBHOOKS_UNAVAILABLE: 'the subscriptions are not read yet, or the server is shutting down',
} as const

export type WebhookErrorCode = keyof typeof WEBHOOK_ERRORS

/** A refused call on webhook subscriptions. The client receives its message. */
export interface WebhookFailure extends Error {
  readonly code: WebhookErrorCode
  readonly details: Readonly<Record<string, unknown>>
}

/** Recognizes an error by its code: connectors do not import the package of webhooks. */
export function isWebhookFailure(error: unknown): error is WebhookFailure {
  if (!(error instanceof Error) || !('code' in error) || !('details' in error)) return false
  return (
    Object.hasOwn(WEBHOOK_ERRORS, String(error.code)) && typeof error.details === 'object' && error.details !== null
  )
}
