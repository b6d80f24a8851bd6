import { CesqlParseError, compileCesql } from '@signalbox/broker-core/internal'
import type { NewWebhookSubscription, WebhookType } from '@signalbox/broker-core/ports'
import { RUN_SOURCE, WEBHOOK_SOURCES } from '@signalbox/broker-core/ports'
import type { Static, TSchema } from 'typebox'
import { Type } from 'typebox'
import { Compile } from 'typebox/schema'

import { invalidMember } from '../errors.ts'
import { parseSecret, randomSecret, SECRET_FORM } from '../signature.ts'

const SubscriptionSchema = Type.Object({
  /** The ClientID of the caller that created the subscription. */
  owner: Type.String(),
  /** The account that the subscription counts against. */
  account: Type.String(),
  type: Type.Enum([...WEBHOOK_SOURCES, RUN_SOURCE]),
  channel: Type.String(),
  endpoint: Type.String(),
  /** The name of a registered format. */
  format: Type.String(),
  /** A CESQL expression; only messages for which it is true are delivered. */
  filter: Type.Optional(Type.String()),
  /** Notes of the connector that created the subscription, for its format. */
  notes: Type.Optional(Type.String()),
  /** Notes that are secret, sealed. */
  sealedNotes: Type.Optional(Type.String()),
  /** `true` if a message is delivered only after the one before it was accepted. */
  ordered: Type.Boolean(),
  /** The sealed secrets, the newest first. One with a time signs until then. */
  secrets: Type.Array(Type.Object({ sealed: Type.String(), untilMs: Type.Optional(Type.Number()) })),
  state: Type.Enum(['active', 'paused', 'disabled']),
  /** The reason for the state `disabled`. */
  reason: Type.Optional(Type.String()),
  createdMs: Type.Number(),
  /** The time after which the subscription is removed, in ms since the epoch. */
  expiresMs: Type.Optional(Type.Number()),
  /** The most deliveries in a minute that the endpoint accepts. */
  ratePerMinute: Type.Optional(Type.Number()),
})

/** A subscription as the log keeps it. */
export type SubscriptionRecord = Stored<typeof SubscriptionSchema>

const CursorSchema = Type.Object({
  /** The node that serves the subscription. */
  node: Type.String(),
  /** Grows when an operator sets the position, so that the serving node starts again. */
  generation: Type.Integer(),
  /** The sequence of the first entry of an events store that was not delivered; 1 for other sources. */
  next: Type.Integer({ minimum: 1 }),
  /** Later entries that were delivered. */
  done: Type.Array(Type.Integer()),
  /** The position in a connector's source. */
  position: Type.Optional(Type.String()),
  /**
   * The messages that failed and are tried again: the stable part of the delivery id, the failed attempts, and the time of
   * the first one, in ms since the epoch.
   */
  attempts: Type.Optional(Type.Array(Type.Tuple([Type.String(), Type.Integer({ minimum: 1 }), Type.Number()]))),
  /** The last failure, while the last attempt failed. */
  failing: Type.Optional(Type.Object({ sinceMs: Type.Number(), reason: Type.String() })),
})

/** The position of a subscription in its source, and the node that serves it. */
export type CursorRecord = Stored<typeof CursorSchema>

/** The type of a stored value. Its optional members may be `undefined`, because JSON leaves those out. */
type Stored<Schema extends TSchema, Value = Static<Schema>> = {
  readonly [Key in keyof Value]: Value[Key] | (object extends Pick<Value, Key> ? undefined : never)
}

const subscriptions = Compile(SubscriptionSchema)
const cursors = Compile(CursorSchema)

/** Reads a stored subscription; returns `undefined` for a value in another form. */
export function readSubscription(value: unknown): SubscriptionRecord | undefined {
  return subscriptions.Check(value) ? value : undefined
}

/** Reads a stored position; returns `undefined` for a value in another form. */
export function readCursor(value: unknown): CursorRecord | undefined {
  return cursors.Check(value) ? value : undefined
}

/** The longest filter, in characters. */
const MAX_FILTER = 4_096

/** Checks the members that need no other part. Returns the secret. @throws WebhookError SUBSCRIPTION_INVALID */
export function checkNewSubscription({ type, filter, start, secret }: NewWebhookSubscription): Uint8Array {
  if (filter !== undefined) checkFilter(type, filter)
  if (start !== undefined && type !== 'events_store') {
    throw invalidMember('start', 'is only for an events store; leave it out')
  }
  if (typeof start === 'number' && (!Number.isSafeInteger(start) || start < 1)) {
    throw invalidMember('start', `is ${start}; it must be "new", "first" or a sequence of at least 1`)
  }
  if (secret === undefined) return randomSecret()
  const bytes = parseSecret(secret)
  if (bytes === undefined) throw invalidMember('secret', `has another form; it must be ${SECRET_FORM}`)
  return bytes
}

function checkFilter(type: WebhookType, filter: string): void {
  if (type === RUN_SOURCE) throw invalidMember('filter', 'is only for channels; leave it out')
  if (type === 'queues') {
    throw invalidMember('filter', 'is not possible for a queue: other messages would have no receiver; leave it out')
  }
  if (filter.length > MAX_FILTER) {
    throw invalidMember('filter', `has ${filter.length} characters; it may have ${MAX_FILTER}`)
  }
  try {
    compileCesql(filter)
  } catch (error) {
    if (error instanceof CesqlParseError) throw invalidMember('filter', `is no valid CESQL: ${error.message}`)
    throw error
  }
}
