import { Buffer } from 'node:buffer'
import { randomBytes, timingSafeEqual } from 'node:crypto'

import type { ChannelType, Message } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import type { NewWebhookSubscription, WebhookFailure, WebhookSubscription } from '@signalbox/broker-core/ports'
import { isJsonObject, readJson } from '@signalbox/http-kit/internal'

import {
  challengeIn,
  deliveryHeaders,
  MAX_DELIVERY_BYTES,
  verificationBody,
  verificationId,
  webhookIdOf,
} from '../wire/events-profile.ts'
import { cursorOf, positionAfter } from './event-log.ts'
import type { EventType, EventTypeOptions } from './event-types.ts'
import { createEventTypes, occurrenceOf } from './event-types.ts'

/** A subscription of a client to deliveries. Its notes are those that {@link eventWebhookFormat} needs. */
export type EventSubscriptionInput = Omit<NewWebhookSubscription, 'format'>

/** A subscription, as far as the protocol needs it. */
export type EventSubscription = Pick<WebhookSubscription, 'next' | 'expiresMs'>

/** The subscriptions of webhooks: the port through which the server provides them. */
export interface EventWebhooks {
  /** As `WebhookSubscriptions.put`, with the format of events. */
  put(id: string, input: EventSubscriptionInput): Promise<EventSubscription>
  /** Ends a subscription of an owner. */
  delete(id: string, owner: string): Promise<void>
}

/** An endpoint that did not agree. */
class Unverified extends Error implements WebhookFailure {
  override readonly name = 'EventWebhookFailure'
  readonly code = 'ENDPOINT_UNVERIFIED'
  readonly details: Readonly<Record<string, unknown>>

  constructor(message: string, reason: string) {
    super(message)
    this.details = { reason }
  }
}

/** A delivery as it is sent. */
export interface EventDelivery {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** The `webhook-id` of the delivery. */
  readonly id: string
}

/** The parts of the verification of an endpoint. */
export interface EventVerification {
  /** The id of the new subscription. */
  readonly subscription: string
  readonly ask: (request: {
    readonly method: 'POST'
    readonly headers: Readonly<Record<string, string>>
    readonly body: Uint8Array
  }) => Promise<{ readonly status: number; readonly text: string }>
  /** Returns the headers that identify and sign a body with the secret of the subscription. */
  readonly sign: (id: string, body: Uint8Array) => Readonly<Record<string, string>>
}

/** The form of deliveries of events, for the package of webhooks. */
export interface EventWebhookFormat {
  /** A stable name: it is stored with each subscription. */
  readonly name: string
  readonly maxBatch: 1
  /** 410 ends one delivery: the client decides on its subscription. */
  readonly goneEnds: 'delivery'
  /** The time in which a delivery is tried again, in ms. */
  readonly maxAgeMs: number
  /** Returns a delivery; `undefined` if the message is no event of the type. @throws Error for an unknown type */
  readonly encode: (
    channelType: ChannelType,
    messages: readonly Message[],
    subscription: { readonly id: string; readonly notes: string },
  ) => EventDelivery | undefined
  /** Asks the endpoint for its consent. @throws WebhookFailure ENDPOINT_UNVERIFIED */
  readonly verify: (verification: EventVerification) => Promise<object>
}

/** The time in which a delivery is tried again: a client that was away longer continues with its cursor, in ms. */
const MAX_AGE_MS = 900_000

const FORMAT = 'mcp.events'

/**
 * Returns the form of deliveries of events.
 * @param types The types of operators
 * @throws RangeError for a type that is not valid
 */
export function eventWebhookFormat(types: readonly EventTypeOptions[] = []): EventWebhookFormat {
  const known = createEventTypes(types)
  return {
    name: FORMAT,
    maxBatch: 1,
    goneEnds: 'delivery',
    maxAgeMs: MAX_AGE_MS,
    encode(_channelType, [message], { id, notes }) {
      if (message === undefined) return undefined
      return delivery(typeIn(notes, known), message, id)
    },
    verify,
  }
}

function delivery(type: EventType, message: Message, subscription: string): EventDelivery | undefined {
  const { channel } = message
  const cursor =
    'sequence' in message && typeof message.sequence === 'number'
      ? cursorOf(channel, positionAfter({ id: message.id, sequence: message.sequence }))
      : null
  const occurrence = occurrenceOf(type, message, cursor)
  if (occurrence === undefined) return undefined
  const body = encodeText(JSON.stringify(occurrence))
  if (body.byteLength > MAX_DELIVERY_BYTES) throw new RangeError(`the event has ${body.byteLength} bytes`)
  return { headers: deliveryHeaders(subscription), body, id: webhookIdOf(occurrence) }
}

/** Returns the notes of a subscription to a type. */
export function notesOf({ name }: Pick<EventType, 'name'>): string {
  return JSON.stringify({ name })
}

function typeIn(notes: string, types: ReadonlyMap<string, EventType>): EventType {
  const value = readJson(notes)?.value
  const name = isJsonObject(value) ? value['name'] : undefined
  const type = typeof name === 'string' ? types.get(name) : undefined
  if (type === undefined) throw new RangeError('the server does not have the event type any more')
  return type
}

/** Asks an endpoint to repeat a random challenge. */
async function verify({ subscription, ask, sign }: EventVerification): Promise<object> {
  const challenge = randomBytes(32).toString('base64url')
  const body = encodeText(verificationBody(challenge))
  const headers = {
    ...deliveryHeaders(subscription),
    ...sign(verificationId(randomBytes(16).toString('base64url')), body),
  }
  const { status, text } = await ask({ method: 'POST', headers, body })
  if (status < 200 || status > 299) {
    const reason = status >= 500 ? 'http_5xx' : status >= 400 ? 'http_4xx' : 'challenge_failed'
    throw new Unverified(`the endpoint answered the verification with status ${status}; it must answer 2xx`, reason)
  }
  const given = Buffer.from(challengeIn(text) ?? '')
  const expected = Buffer.from(challenge)
  if (given.byteLength !== expected.byteLength || !timingSafeEqual(given, expected)) {
    throw new Unverified(
      'the endpoint answered the verification without its challenge; it must answer {"challenge": …} with the same value',
      'challenge_failed',
    )
  }
  return {}
}
