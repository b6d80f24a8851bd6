import type { NewWebhookSubscription, WebhookSource } from '@signalbox/broker-core/ports'
import { compileCesql, CesqlParseError } from '@signalbox/broker-core/internal'

import { invalidMember } from '../errors.ts'
import { parseSecret, randomSecret, SECRET_FORM } from '../secrets/signature.ts'

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

function checkFilter(type: WebhookSource, filter: string): void {
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
