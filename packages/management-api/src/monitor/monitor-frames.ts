import { Buffer } from 'node:buffer'

import type { ChannelType, OutgoingMessage } from '@signalbox/broker-core'
import { bodyText } from '@signalbox/http-kit'

import { firstBytes } from '../messages/first-bytes.ts'
import type { Direction } from './monitor-filter.ts'

/** A message that monitors may show. */
export interface Sighting {
  readonly direction: Direction
  readonly type: ChannelType
  readonly channel: string
  /** The sender, or the receiver of a delivery. */
  readonly client: string
  readonly message: OutgoingMessage
  /** In ms since the epoch. */
  readonly time: number
}

/** Longer metadata and further tags are left out, as with bodies. */
const MAX_METADATA = 1_024
const MAX_TAGS = 64

/** Returns the frame that shows a message, as JSON text. */
export function messageFrame(
  { direction, type, channel, client, message, time }: Sighting,
  maxBodySize: number,
): Buffer {
  const { id, body, metadata, tags } = message
  return json({
    kind: 'message',
    time: new Date(time).toISOString(),
    direction,
    type,
    channel,
    client,
    id,
    metadata: metadata.slice(0, MAX_METADATA).toWellFormed(),
    tags: Object.fromEntries(
      Object.entries(tags)
        .slice(0, MAX_TAGS)
        .map(([key, value]) => [key.slice(0, MAX_METADATA), value.slice(0, MAX_METADATA).toWellFormed()]),
    ),
    ...bodyText(firstBytes(body, maxBodySize)),
    body_size: body.byteLength,
    truncated: body.byteLength > maxBodySize,
  })
}

/**
 * Returns the frame for messages that were not shown, because the reader or the server was too
 * slow; `total` counts all so far.
 */
export function droppedFrame(count: number, total: number): Buffer {
  return json({ kind: 'dropped', count, total })
}

export function stateFrame(kind: 'started' | 'stopped'): Buffer {
  return json({ kind })
}

export function errorFrame(message: string): Buffer {
  return json({ kind: 'error', message })
}

export function endFrame(reason: string): Buffer {
  return json({ kind: 'end', reason })
}

function json(frame: object): Buffer {
  return Buffer.from(JSON.stringify(frame))
}
