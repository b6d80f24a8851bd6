import type { WebhookSubscription } from '@signalbox/broker-core/ports'

import { deadLetterQueueOf } from '../delivery/dead-letters.ts'
import type { KnownSubscription } from './subscription-index.ts'

export function viewOf({ id, record, cursor }: KnownSubscription): WebhookSubscription {
  const { owner, type, channel, endpoint, format, filter, ordered, createdMs, expiresMs } = record
  const failing = record.state === 'active' ? cursor.failing : undefined
  const reason = record.reason ?? failing?.reason
  return {
    id,
    owner,
    type,
    channel,
    endpoint,
    format,
    filter,
    ordered,
    state: failing === undefined ? record.state : 'failing',
    reason,
    createdMs,
    expiresMs,
    next: type === 'events_store' ? cursor.next : undefined,
    deadLetterQueue: deadLetterQueueOf(id),
  }
}
