import { Buffer } from 'node:buffer'

import { CHANNEL_TYPES } from './channel.ts'
import type { ChannelName } from './engine/channel-engine.ts'
import { BrokerError } from './errors.ts'

/** The approximate size of a channel as JSON without its name, in bytes. */
const DESCRIPTOR_BYTES = 64

/**
 * Encodes the last channel of a page. The cursor is a name, not a position, so it remains valid when channels are
 * created or deleted.
 */
export function cursorOfChannel({ type, name }: ChannelName): string {
  return Buffer.from(`${type} ${name}`).toString('base64url')
}

/** Decodes a cursor. @throws BrokerError ARGUMENT_INVALID if no page returns this cursor */
export function channelOfCursor(cursor: string): ChannelName {
  const text = Buffer.from(cursor, 'base64url').toString()
  const type = CHANNEL_TYPES.find((each) => text.startsWith(`${each} `))
  const channel = type && { type, name: text.slice(type.length + 1) }
  if (channel && cursorOfChannel(channel) === cursor) return channel
  throw new BrokerError(
    'ARGUMENT_INVALID',
    'invalid argument cursor: no page returned it; allowed is the next cursor of the previous page',
    {
      argument: 'cursor',
      allowed: 'the next cursor of the previous page',
    },
  )
}

/** Compares two channels in the order of pages: by type, then by name. */
export function inPageOrder(a: ChannelName, b: ChannelName): number {
  if (a.type !== b.type) return a.type < b.type ? -1 : 1
  if (a.name === b.name) return 0
  return a.name < b.name ? -1 : 1
}

/** Returns the names that fit into a page; at least one, if there is any. */
export function firstOf(names: readonly ChannelName[], limit: number, maxBytes: number): readonly ChannelName[] {
  let count = 0
  let bytes = 0
  for (const { name } of names) {
    bytes += Buffer.byteLength(name) + DESCRIPTOR_BYTES
    if (count > 0 && (count >= limit || bytes > maxBytes)) break
    count++
  }
  return names.slice(0, count)
}
