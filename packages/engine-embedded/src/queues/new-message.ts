import type { QueueSend } from '@signalbox/broker-core/engine'
import { messageSize } from '@signalbox/broker-core/engine'

import { ownBody } from '../bytes.ts'
import { tagsJson } from '../store/tags.ts'
import type { NewQueueMessage } from '../writer/operations.ts'

/** Returns the row of a message that is sent now. Times are in ms since the epoch. */
export function newMessage(message: QueueSend, now: number): NewQueueMessage {
  const { id, clientId, metadata, tags, delayMs, expirationMs, maxReceiveCount, deadLetterQueue } = message
  const size = messageSize(message)
  const expiresAt = expirationMs > 0 ? now + expirationMs : 0
  const body = ownBody(message.body)
  return {
    columns: [id, clientId, now, size, metadata, tagsJson(tags), expiresAt, maxReceiveCount, deadLetterQueue, body],
    dueAt: delayMs > 0 ? now + delayMs : 0,
    ...(message.deduplicationId === undefined ? {} : { deduplicationId: message.deduplicationId }),
  }
}
