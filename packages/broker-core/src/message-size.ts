import { Buffer } from 'node:buffer'

import type { OutgoingMessage } from './message.ts'

/** Returns the bytes of body, metadata and tags together, the size that limits and counters use. */
export function messageSize({ body, metadata, tags }: Pick<OutgoingMessage, 'body' | 'metadata' | 'tags'>): number {
  let bytes = body.byteLength
  if (metadata !== '') bytes += Buffer.byteLength(metadata)
  for (const key of Object.keys(tags)) bytes += Buffer.byteLength(key) + Buffer.byteLength(tags[key] ?? '')
  return bytes
}
