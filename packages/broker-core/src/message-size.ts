import { Buffer } from 'node:buffer'

import type { OutgoingMessage } from './message.ts'

/** Bytes of body, metadata and tags together: what limits and counters go by. */
export function messageSize({ body, metadata, tags }: Pick<OutgoingMessage, 'body' | 'metadata' | 'tags'>): number {
  let bytes = body.byteLength
  if (metadata !== '') bytes += Buffer.byteLength(metadata)
  for (const key of Object.keys(tags)) bytes += Buffer.byteLength(key) + Buffer.byteLength(tags[key] ?? '')
  return bytes
}
