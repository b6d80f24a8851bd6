import type { OutgoingMessage, QueueMessage, QueueSend } from '@signalbox/broker-core/engine'

import type { MessageEnvelope } from '../envelope.ts'
import { decodeEnvelope, numberField, textField } from '../envelope.ts'
import { hash } from '../subjects.ts'

/** A message of a queue as its stream stores it. */
export interface QueueRecord {
  readonly envelope: MessageEnvelope
  /** Milliseconds since the epoch; 0 means at once. */
  readonly dueAt: number
  /** Milliseconds since the epoch; 0 means never. */
  readonly expiresAt: number
  readonly maxReceiveCount: number
  readonly deadLetterQueue: string
}

export function toRecord(channel: string, message: QueueSend, now: number): QueueRecord {
  const dueAt = message.delayMs > 0 ? now + message.delayMs : 0
  const expiresAt = message.expirationMs > 0 ? now + message.expirationMs : 0
  const { maxReceiveCount, deadLetterQueue } = message
  return {
    envelope: envelopeOf(channel, message, dueAt, expiresAt, message),
    dueAt,
    expiresAt,
    maxReceiveCount,
    deadLetterQueue,
  }
}

/** Creates the record of a dead letter: it neither expires nor moves again. */
export function deadRecord(channel: string, message: OutgoingMessage): QueueRecord {
  return {
    envelope: envelopeOf(channel, message, 0, 0, { maxReceiveCount: 0, deadLetterQueue: '' }),
    dueAt: 0,
    expiresAt: 0,
    maxReceiveCount: 0,
    deadLetterQueue: '',
  }
}

function envelopeOf(
  channel: string,
  { id, clientId, metadata, tags, body }: OutgoingMessage,
  dueAt: number,
  expiresAt: number,
  {
    maxReceiveCount,
    deadLetterQueue,
    deduplicationId,
  }: Pick<QueueSend, 'maxReceiveCount' | 'deadLetterQueue' | 'deduplicationId'>,
): MessageEnvelope {
  const fields: Record<string, string | number> = {}
  if (dueAt > 0) fields['due'] = dueAt
  if (expiresAt > 0) fields['expires'] = expiresAt
  if (maxReceiveCount > 0) fields['receives'] = maxReceiveCount
  if (deadLetterQueue !== '') fields['dead'] = deadLetterQueue
  if (deduplicationId !== undefined) fields['dedup'] = hash(deduplicationId)
  return { id, clientId, channel, metadata, tags, fields, body }
}

export function readRecord(data: Uint8Array): QueueRecord | undefined {
  const envelope = decodeEnvelope(data)
  return (
    envelope && {
      envelope,
      dueAt: numberField(envelope, 'due'),
      expiresAt: numberField(envelope, 'expires'),
      maxReceiveCount: numberField(envelope, 'receives'),
      deadLetterQueue: textField(envelope, 'dead'),
    }
  )
}

export function toMessage(
  channel: string,
  { envelope, expiresAt, maxReceiveCount, deadLetterQueue }: QueueRecord,
  sequence: number,
  timestamp: number,
  receiveCount: number,
): QueueMessage {
  const { id, clientId, metadata, tags, body } = envelope
  return {
    id,
    clientId,
    channel,
    body,
    metadata,
    tags,
    timestamp,
    sequence,
    receiveCount,
    expiresAt,
    maxReceiveCount,
    deadLetterQueue,
  }
}
