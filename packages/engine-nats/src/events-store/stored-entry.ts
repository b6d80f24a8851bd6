import type { EventsStoreAppend, StoredEvent } from '@signalbox/broker-core/engine'

import { decodeEnvelope, encodeEnvelope, numberField } from '../envelope.ts'
import { hash } from '../subjects.ts'

/** Encodes an entry for its stream. */
export function encodeEntry(
  channel: string,
  { id, clientId, metadata, tags, body, key, tombstone, deduplicationId }: EventsStoreAppend,
): Uint8Array {
  const fields: Record<string, string | number> = {}
  if (key !== undefined) fields['key'] = key
  if (tombstone === true) fields['tombstone'] = 1
  if (deduplicationId !== undefined) fields['dedup'] = hash(deduplicationId)
  return encodeEnvelope({ id, clientId, channel, metadata, tags, fields, body })
}

/** Decodes an entry. Returns undefined for data that no node of this broker stored. */
export function decodeEntry(
  channel: string,
  { data, sequence, timestamp }: { data: Uint8Array; sequence: number; timestamp: number },
): StoredEvent | undefined {
  const envelope = decodeEnvelope(data)
  if (!envelope) return undefined
  const { id, clientId, metadata, tags, body, fields } = envelope
  const key = fields['key']
  return {
    id,
    clientId,
    channel,
    body,
    metadata,
    tags,
    timestamp,
    sequence,
    ...(typeof key === 'string' && { key }),
    ...(numberField(envelope, 'tombstone') === 1 && { tombstone: true as const }),
  }
}
