import { deadLetterQueueOf } from '../delivery/dead-letters.ts'
import type { KnownSubscription } from './subscription-index.ts'
import type { SourceType } from './subscription-record.ts'

export const SUBSCRIPTION_STATES = ['active', 'failing', 'paused', 'disabled'] as const

/** `failing`: the last attempt failed, and the message is tried again. */
export type SubscriptionState = (typeof SUBSCRIPTION_STATES)[number]

/** A subscription as its owner and operators see it, without its secret. */
export interface SubscriptionView {
  readonly id: string
  readonly owner: string
  readonly type: SourceType
  readonly channel: string
  readonly endpoint: string
  readonly format: string
  readonly filter?: string
  readonly ordered: boolean
  readonly state: SubscriptionState
  /** The reason for the states `failing` and `disabled`. */
  readonly reason?: string
  readonly createdMs: number
  readonly expiresMs?: number
  /** The first sequence of an events store that is not delivered. */
  readonly next?: number
  /** The queue of messages that could not be delivered. It exists after the first one. */
  readonly deadLetterQueue: string
}

export function viewOf({ id, record, cursor }: KnownSubscription): SubscriptionView {
  const { owner, type, channel, endpoint, format, filter, ordered, createdMs, expiresMs } = record
  const reason = record.reason ?? (record.state === 'active' ? cursor.failing?.reason : undefined)
  return {
    id,
    owner,
    type,
    channel,
    endpoint,
    format,
    ...(filter === undefined ? {} : { filter }),
    ordered,
    state: record.state === 'active' && cursor.failing !== undefined ? 'failing' : record.state,
    ...(reason === undefined ? {} : { reason }),
    createdMs,
    ...(expiresMs === undefined ? {} : { expiresMs }),
    ...(type === 'events_store' ? { next: cursor.next } : {}),
    deadLetterQueue: deadLetterQueueOf(id),
  }
}
