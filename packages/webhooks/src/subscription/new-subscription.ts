import { compileCesql, CesqlParseError } from '@signalbox/broker-core/internal'

import { invalidMember } from '../errors.ts'
import { parseSecret, randomSecret, SECRET_FORM } from '../secrets/signature.ts'
import type { SourceType } from './subscription-record.ts'

/** A subscription to create. */
export interface NewSubscription {
  readonly owner: string
  /** The account that the subscription counts against. @default owner */
  readonly account?: string
  readonly type: SourceType
  readonly channel: string
  /** The URL that gets the messages. */
  readonly endpoint: string
  /** The name of a registered format. */
  readonly format: string
  /** A CESQL expression; only messages for which it is true are delivered. Not for queues. @default none */
  readonly filter?: string
  /** `true` delivers a message only after the one before it was accepted. @default true for an events store */
  readonly ordered?: boolean
  /** The first entry of an events store: the next one, the first stored one, or a sequence. @default 'new' */
  readonly start?: 'new' | 'first' | number
  /** The secret that signs deliveries, `whsec_…`. @default a generated one */
  readonly secret?: string
  /** Notes for the format, which gets them with each delivery. @default none */
  readonly notes?: string
  /** The time after which the subscription is removed, in ms since the epoch. @default never */
  readonly expiresMs?: number
}

/** The longest filter, in characters. */
const MAX_FILTER = 4_096

/** Checks the members that need no other part. Returns the secret. @throws WebhookError SUBSCRIPTION_INVALID */
export function checkNewSubscription({ type, filter, start, secret }: NewSubscription): Uint8Array {
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

function checkFilter(type: SourceType, filter: string): void {
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
