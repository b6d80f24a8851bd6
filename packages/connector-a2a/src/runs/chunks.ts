import { Buffer } from 'node:buffer'

import type { RunChunk } from './run-log.ts'

/** The most bytes of a chunk. */
export const CHUNK_BYTES = 262_144

/** A part of a chunk that its events decide. */
export interface ChunkContent extends Pick<RunChunk, 'first' | 'body' | 'more' | 'continues'> {
  /** True for the last one of its events. */
  readonly isLast: boolean
}

/**
 * Divides events into chunks: as many as fit into each, and a large event into several.
 * @param texts The events, each with its empty line, with one character for each byte
 * @param first The sequence of the first event
 */
export function* chunksOf(texts: readonly string[], first: number): Generator<ChunkContent> {
  let sequence = first
  for (let at = 0; at < texts.length;) {
    const count = fitting(texts, at)
    const body = Buffer.from(texts.slice(at, at + count).join(''), 'latin1')
    at += count
    for (let from = 0; from < body.length; from += CHUNK_BYTES) {
      const more = from + CHUNK_BYTES < body.length
      const part = body.subarray(from, from + CHUNK_BYTES)
      const begins = from > 0 ? sequence + count : sequence
      yield { first: begins, body: part, more, continues: from > 0, isLast: at >= texts.length && !more }
    }
    sequence += count
  }
}

/** Returns the number of texts, from `at` on, that fit into one chunk: at least one. */
function fitting(texts: readonly string[], at: number): number {
  let count = 1
  let bytes = texts[at]?.length ?? 0
  for (let text = texts[at + count]; text !== undefined; text = texts[at + count]) {
    bytes += text.length
    if (bytes > CHUNK_BYTES) break
    count++
  }
  return count
}

/** Returns the sequence of the last event that is complete at the end of a chunk. */
export function lastEventOf({
  body,
  continues,
  first,
  more,
}: Pick<RunChunk, 'body' | 'continues' | 'first' | 'more'>): number {
  if (more) return continues ? first - 2 : first - 1
  if (continues) return first - 1
  // Each event ends with an empty line, and its data has none.
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  let count = 0
  for (let at = text.indexOf('\n\n'); at !== -1; at = text.indexOf('\n\n', at + 2)) count++
  return first - 1 + count
}
