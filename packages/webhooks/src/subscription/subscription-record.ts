import { WEBHOOK_SOURCES } from '@signalbox/broker-core/ports'
import { Type } from 'typebox'
import type { Static } from 'typebox'
import { Compile } from 'typebox/schema'

const SubscriptionSchema = Type.Object({
  /** The ClientID of the caller that created the subscription. */
  owner: Type.String(),
  /** The account that the subscription counts against. */
  account: Type.String(),
  type: Type.Enum([...WEBHOOK_SOURCES]),
  channel: Type.String(),
  endpoint: Type.String(),
  /** The name of a registered format. */
  format: Type.String(),
  /** A CESQL expression; only messages for which it is true are delivered. */
  filter: Type.Optional(Type.String()),
  /** Notes of the connector that created the subscription, for its format. */
  notes: Type.Optional(Type.String()),
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
export type SubscriptionRecord = Readonly<Static<typeof SubscriptionSchema>>

const CursorSchema = Type.Object({
  /** The node that serves the subscription. */
  node: Type.String(),
  /** Grows when an operator sets the position, so that the serving node starts again. */
  generation: Type.Integer(),
  /** The sequence of the first entry of an events store that was not delivered; 1 for other sources. */
  next: Type.Integer({ minimum: 1 }),
  /** Later entries that were delivered. */
  done: Type.Array(Type.Integer()),
  /**
   * The messages that failed and are tried again: the stable part of the delivery id, the failed attempts, and the time of
   * the first one, in ms since the epoch.
   */
  attempts: Type.Optional(Type.Array(Type.Tuple([Type.String(), Type.Integer({ minimum: 1 }), Type.Number()]))),
  /** The last failure, while the last attempt failed. */
  failing: Type.Optional(Type.Object({ sinceMs: Type.Number(), reason: Type.String() })),
})

/** The position of a subscription in its source, and the node that serves it. */
export type CursorRecord = Readonly<Static<typeof CursorSchema>>

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
