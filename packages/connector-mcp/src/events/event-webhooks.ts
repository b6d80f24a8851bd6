import { Buffer } from 'node:buffer'
import { randomBytes, timingSafeEqual } from 'node:crypto'

import type { Message } from '@signalbox/broker-core'
import { encodeText } from '@signalbox/broker-core'
import type {
  EncodedDelivery,
  NewWebhookSubscription,
  Verification,
  WebhookFailure,
  WebhookFormat,
  WebhookSubscription,
} from '@signalbox/broker-core/ports'
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

/** The time in which a delivery is tried again: a client that was away longer continues with its cursor, in ms. */
const MAX_AGE_MS = 900_000

const FORMAT = 'mcp.events'

/**
 * Returns the form of deliveries of events. A message that is no event of the type is not delivered, and the answer 410
 * ends one delivery alone: the client decides on its subscription.
 * @param types The types of operators
 * @throws RangeError for a type that is not valid
 */
export function eventWebhookFormat(types: readonly EventTypeOptions[] = []): WebhookFormat {
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

function delivery(type: EventType, message: Message, subscription: string): EncodedDelivery | undefined {
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
async function verify({ subscription, ask, sign }: Verification): Promise<object> {
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
