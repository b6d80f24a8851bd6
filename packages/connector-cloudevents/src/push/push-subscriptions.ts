import type {
  CreatedWebhookSubscription,
  NewWebhookSubscription,
  WebhookSource,
  WebhookSubscription,
  WebhookSubscriptions,
} from '@signalbox/broker-core/ports'
import { compileQuery } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { invalidParameters } from '../errors.ts'

/** The channel types whose messages can be delivered. */
export type PushType = WebhookSource

/** A subscription to create; its format is one of `CE_PUSH_FORMATS`. */
export type NewPushSubscription = NewWebhookSubscription

export type PushSubscription = WebhookSubscription

export type CreatedPushSubscription = CreatedWebhookSubscription

/** The subscriptions of webhooks: the port through which the server provides them. */
export type PushSubscriptions = Omit<WebhookSubscriptions, 'put'>

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
