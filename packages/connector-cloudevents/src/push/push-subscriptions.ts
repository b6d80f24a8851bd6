import { compileQuery } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { invalidParameters } from '../errors.ts'

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
 * `code` of `PushErrorCode` and `details`, or with Broker errors.
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

/** The path of subscriptions below the connector's path. */
export const PUSH_PATH = 'subscriptions'

/** The largest body of a subscription, in bytes. */
export const MAX_PUSH_BYTES = 65_536

/** All subscriptions of the caller, one of them, or its secret. */
export interface PushTarget {
  readonly id: string | undefined
  readonly isSecret: boolean
}

const SECRET = '/secret'

const ID = /^[A-Za-z0-9_-]{1,64}$/

/** Returns the target of a path below the connector's path; `undefined` for another path. */
export function pushTarget(path: string): PushTarget | undefined {
  if (path === PUSH_PATH) return { id: undefined, isSecret: false }
  if (!path.startsWith(`${PUSH_PATH}/`)) return undefined
  const isSecret = path.endsWith(SECRET)
  const id = path.slice(PUSH_PATH.length + 1, isSecret ? -SECRET.length : undefined)
  return ID.test(id) ? { id, isSecret } : undefined
}

/** Returns the methods of a target. */
export function pushMethods({ id, isSecret }: PushTarget): readonly string[] {
  if (isSecret) return ['POST']
  return id === undefined ? ['GET', 'POST'] : ['GET', 'DELETE']
}

/** Returns `true` if a request has a body that the server reads. */
export function hasPushBody({ id }: PushTarget, method: string): boolean {
  return method === 'POST' && id === undefined
}

/** Checks that a request has no query. @throws CeError PARAMETER_INVALID */
export const refuseQuery: (query: string) => void = compileQuery(
  Type.Object({}, { additionalProperties: false }),
  invalidParameters,
)
