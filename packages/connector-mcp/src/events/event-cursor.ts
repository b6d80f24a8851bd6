import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'

import type { StoredEvent } from '@signalbox/broker-core'

/**
 * A position in an events store. It contains no address of a node and no time, so each node continues it, also after
 * a restart.
 */
export interface EventPosition {
  /** The sequence of the next entry. */
  readonly next: number
  /** The mark of the entry before it; empty if that entry is not known. */
  readonly mark: string
}

const VERSION = '1'

/** The most characters of a cursor, far more than those of this server have. */
const MAX_CURSOR = 256

const MARK = /^[A-Za-z0-9_-]{0,11}$/
const DIGITS = /^[1-9][0-9]{0,15}$/

/** Returns a mark by which an entry is recognized. A channel that was created again has entries with other marks. */
export function markOf({ id }: Pick<StoredEvent, 'id'>): string {
  return shortHash(id)
}

/** Returns the position after an entry. */
export function positionAfter(event: Pick<StoredEvent, 'id' | 'sequence'>): EventPosition {
  return { next: event.sequence + 1, mark: markOf(event) }
}

/** Returns a position as an opaque text that is valid for one channel. */
export function cursorOf(channel: string, { next, mark }: EventPosition): string {
  return Buffer.from(`${VERSION}.${next}.${mark}.${shortHash(channel)}`).toString('base64url')
}

/** Reads a cursor; returns `undefined` for another text, and for a cursor of another channel. */
export function readCursor(channel: string, cursor: string): EventPosition | undefined {
  if (cursor.length > MAX_CURSOR) return undefined
  const [version, next = '', mark = '', ofChannel, ...rest] = Buffer.from(cursor, 'base64url').toString().split('.')
  if (version !== VERSION || rest.length > 0 || ofChannel !== shortHash(channel)) return undefined
  const sequence = DIGITS.test(next) ? Number(next) : Number.NaN
  return Number.isSafeInteger(sequence) && MARK.test(mark) ? { next: sequence, mark } : undefined
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 11)
}
