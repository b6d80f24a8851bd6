import type { JsonObject } from '@signalbox/http-kit'
import { JsonRpcError } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'

/**
 * The extension Events on the wire. Its error codes, capability keys and the meaning of `webhook-id` differ between
 * its drafts and its clients, so all of them are in this file.
 */

/** The extension of event subscriptions. */
const EVENTS_EXTENSION = 'io.modelcontextprotocol/events'

/** The methods of the extension. All need an id. */
export const EVENTS_METHODS = [
  'events/list',
  'events/poll',
  'events/stream',
  'events/subscribe',
  'events/unsubscribe',
] as const

/** The errors that the extension adds. */
export type EventsErrorName = 'NOT_FOUND' | 'FORBIDDEN' | 'RESOURCE_EXHAUSTED' | 'UNSUPPORTED' | 'CALLBACK_ENDPOINT'

type EventsCodes = Readonly<Record<EventsErrorName, number>>

/** The codes of the first sketch, which most clients know. */
const SKETCH: EventsCodes = {
  NOT_FOUND: -32011,
  FORBIDDEN: -32012,
  RESOURCE_EXHAUSTED: -32013,
  UNSUPPORTED: -32014,
  CALLBACK_ENDPOINT: -32015,
}

/** The codes of SEP-3415. */
const SEP: EventsCodes = {
  NOT_FOUND: -32023,
  FORBIDDEN: -32024,
  RESOURCE_EXHAUSTED: -32025,
  UNSUPPORTED: -32026,
  CALLBACK_ENDPOINT: -32027,
}

/** The error codes of the extension by family. */
export const EVENTS_CODES = { sketch: SKETCH, sep: SEP } as const

/** The family of error codes: `auto` is that of SEP-3415 for requests that declare the extension, else the sketch. */
export type EventsCodeFamily = 'auto' | 'sketch' | 'sep'

/** The families, for settings. */
export const EVENTS_CODE_FAMILIES: readonly EventsCodeFamily[] = ['auto', 'sketch', 'sep']

/** Returns the members that the server adds to its capabilities: clients look for either of the two keys. */
export function eventsCapabilities(): { readonly key: object; readonly extensions: Readonly<Record<string, object>> } {
  return { key: { events: {} }, extensions: { [EVENTS_EXTENSION]: {} } }
}

/** The form of errors and answers for one request. */
export class EventsDialect {
  readonly #sep: boolean

  /** @param declared `true` if the request declares the extension */
  constructor(family: EventsCodeFamily, declared: boolean) {
    this.#sep = family === 'sep' || (family === 'auto' && declared)
  }

  error(name: EventsErrorName, message: string, data?: unknown): JsonRpcError {
    return new JsonRpcError(EVENTS_CODES[this.#sep ? 'sep' : 'sketch'][name], message, { data })
  }

  /** `true` if unsubscribing from an unknown subscription is an error. In the first sketch it succeeds. */
  get refusesUnknown(): boolean {
    return this.#sep
  }
}

/** Returns `true` if the capabilities of a client declare the extension. */
export function declaresEvents({ extensions, events }: JsonObject): boolean {
  return isJsonObject(events) || (isJsonObject(extensions) && isJsonObject(extensions[EVENTS_EXTENSION]))
}

/** An event as it is sent: in a poll, on a stream and to a webhook. */
export interface Occurrence {
  /** The same on every path and in every attempt. */
  readonly eventId: string
  readonly name: string
  /** ISO 8601. */
  readonly timestamp: string
  readonly data: JsonObject
  /** The position after the event; `null` for types that cannot be replayed. */
  readonly cursor: string | null
}

/** The notifications on an event stream. */
export type EventsNotification =
  | { readonly kind: 'active'; readonly cursor: string | null; readonly truncated: boolean }
  | { readonly kind: 'event'; readonly occurrence: Occurrence }
  | { readonly kind: 'heartbeat'; readonly cursor: string | null }
  | { readonly kind: 'error' | 'terminated'; readonly error: Pick<JsonRpcError, 'code' | 'message'> }

/**
 * Returns a message on an event stream.
 * @param id The source text of the request's id
 */
export function eventsNotification(id: string, notification: EventsNotification): string {
  const params = JSON.stringify(paramsOf(notification)).slice(1, -1)
  const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":${id}}`
  return `{"jsonrpc":"2.0","method":"notifications/events/${notification.kind}","params":{${params},${meta}}}`
}

function paramsOf(notification: EventsNotification): object {
  switch (notification.kind) {
    case 'event':
      return notification.occurrence
    case 'error':
    case 'terminated':
      return { error: { code: notification.error.code, message: notification.error.message } }
    default: {
      const { kind: _kind, ...params } = notification
      return params
    }
  }
}

/** The longest interval between two messages on an event stream, in ms: a comment does not count as one. */
export const HEARTBEAT_MS = 15_000

/** The largest delivery to a webhook, in bytes. */
export const MAX_DELIVERY_BYTES = 256 * 1024

/** The header that names the subscription of a delivery. */
const SUBSCRIPTION_HEADER = 'x-mcp-subscription-id'

/** Returns the headers of a delivery, without its signature. */
export function deliveryHeaders(subscriptionId: string): Readonly<Record<string, string>> {
  return { 'content-type': 'application/json', [SUBSCRIPTION_HEADER]: subscriptionId }
}

/** Returns the `webhook-id` of an event: its `eventId`, because published clients refuse another one. */
export function webhookIdOf({ eventId }: Occurrence): string {
  return eventId
}

/** Returns the body that asks an endpoint for its consent. */
export function verificationBody(challenge: string): string {
  return JSON.stringify({ type: 'verification', challenge })
}

/** Returns the `webhook-id` of a verification. */
export function verificationId(random: string): string {
  return `msg_verification_${random}`
}

/** Returns the challenge in the answer to a verification. */
export function challengeIn(answer: string): string | undefined {
  try {
    const value: unknown = JSON.parse(answer)
    const challenge = isJsonObject(value) ? value['challenge'] : undefined
    return typeof challenge === 'string' ? challenge : undefined
  } catch {
    return undefined
  }
}
