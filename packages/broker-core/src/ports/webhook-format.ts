import type { Message } from '../message.ts'
import type { WebhookSource } from './webhooks.ts'

/** A request to an endpoint outside a delivery, for the verification of intent. */
export interface EndpointRequest {
  readonly method: 'OPTIONS' | 'POST' | 'GET'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
}

export interface EndpointAnswer {
  readonly status: number
  /** The headers in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The first 4 KiB of the body. */
  readonly text: string
}

/** The facts that a verification of intent needs. */
export interface Verification {
  /** Sends a request to the endpoint. Rejects if it gives no answer. */
  readonly ask: (request: EndpointRequest) => Promise<EndpointAnswer>
  /** The DNS name by which this server introduces itself. */
  readonly origin: string
  /** The id of the new subscription. */
  readonly subscription: string
  /** Returns the headers that identify and sign a body with the secret of the subscription. */
  readonly sign: (id: string, body: Uint8Array) => Readonly<Record<string, string>>
}

/** The permission of an endpoint. */
export interface Verified {
  /** The most deliveries in a minute. @default no limit */
  readonly ratePerMinute?: number
}

/** A delivery as it is sent. */
export interface EncodedDelivery {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** The `webhook-id`, the same in each attempt. @default an id of the subscription and the message */
  readonly id?: string
  /** `true` leaves out the signature, for an endpoint that does not know the secret. @default false */
  readonly unsigned?: boolean
}

/** The subscription of a delivery. */
export interface DeliverySubscription {
  readonly id: string
  /** The notes of the connector that created the subscription; empty without any. */
  readonly notes: string
  /** The notes that are stored sealed; empty without any. */
  readonly secretNotes: string
}

/** The form of deliveries on the wire. A connector registers its formats; a subscription names one. */
export interface WebhookFormat {
  /** A stable name: it is stored with each subscription. */
  readonly name: string
  /** The most messages in one delivery. */
  readonly maxBatch: number
  /**
   * The effect of the answer 410: it disables the subscription, removes it, or ends one delivery. @default
   * 'subscription'
   */
  readonly goneEnds?: 'subscription' | 'removal' | 'delivery'
  /** The time after the first attempt in which a message is tried again, in ms. @default `maxAgeMs` of the options */
  readonly maxAgeMs?: number
  /**
   * Returns the delivery of one message or more; `undefined` if the endpoint is not to have them. Messages of a
   * connector's source have the type `events`.
   */
  readonly encode: (
    type: WebhookSource,
    messages: readonly Message[],
    subscription: DeliverySubscription,
  ) => EncodedDelivery | undefined
  /**
   * Asks the endpoint for its consent before the subscription is stored.
   * @throws WebhookFailure ENDPOINT_UNVERIFIED
   */
  readonly verify: (verification: Verification) => Promise<Verified>
}
