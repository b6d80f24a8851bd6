import type { EntryRow, QueueRow } from './message-rows.ts'

// ── Rows for the other thread ──

/** A text of each row, or a single one that all rows share. */
export type Texts = string | readonly string[]

/**
 * Rows as columns, with all numbers in one array and all bodies in one buffer: cloning an object and a buffer for each
 * row costs more than storing it.
 */
export interface PackedQueueRows {
  readonly id: Texts
  readonly clientId: Texts
  readonly metadata: Texts
  readonly tags: Texts
  readonly deadLetterQueue: Texts
  /** Only for rows with a deduplication id. */
  readonly deduplicationId: readonly (string | undefined)[] | undefined
  /** {@link QUEUE_NUMBERS} numbers for each: timestamp, size, expiresAt, dueAt, maxReceiveCount, end of the body. */
  readonly numbers: Float64Array
  readonly bodies: Uint8Array<ArrayBuffer>
}

const QUEUE_NUMBERS = 6

export function packQueueRows(rows: readonly QueueRow[]): PackedQueueRows {
  const numbers = new Float64Array(rows.length * QUEUE_NUMBERS)
  const bodies = new Uint8Array(bytesOf(rows))
  let at = 0
  let end = 0
  for (const { timestamp, size, expiresAt, dueAt, maxReceiveCount, body } of rows) {
    bodies.set(body, end)
    end += body.byteLength
    numbers[at++] = timestamp
    numbers[at++] = size
    numbers[at++] = expiresAt
    numbers[at++] = dueAt
    numbers[at++] = maxReceiveCount
    numbers[at++] = end
  }
  return {
    id: packTexts(rows, ({ id }) => id),
    clientId: packTexts(rows, ({ clientId }) => clientId),
    metadata: packTexts(rows, ({ metadata }) => metadata),
    tags: packTexts(rows, ({ tags }) => tags),
    deadLetterQueue: packTexts(rows, ({ deadLetterQueue }) => deadLetterQueue),
    deduplicationId: packOptional(rows),
    numbers,
    bodies,
  }
}

export function queueRowAt(packed: PackedQueueRows, row: number): QueueRow {
  const { numbers, bodies } = packed
  const at = row * QUEUE_NUMBERS
  const begin = row === 0 ? 0 : numbers[at - 1]
  return {
    id: textAt(packed.id, row),
    clientId: textAt(packed.clientId, row),
    timestamp: numbers[at] ?? 0,
    size: numbers[at + 1] ?? 0,
    metadata: textAt(packed.metadata, row),
    tags: textAt(packed.tags, row),
    expiresAt: numbers[at + 2] ?? 0,
    maxReceiveCount: numbers[at + 4] ?? 0,
    deadLetterQueue: textAt(packed.deadLetterQueue, row),
    body: bodies.subarray(begin, numbers[at + 5]),
    dueAt: numbers[at + 3] ?? 0,
    deduplicationId: packed.deduplicationId?.[row],
  }
}

/** Entries as columns, like {@link PackedQueueRows}. */
export interface PackedEntryRows {
  readonly id: Texts
  readonly clientId: Texts
  readonly metadata: Texts
  readonly tags: Texts
  readonly key: readonly (string | null)[]
  readonly deduplicationId: readonly (string | undefined)[] | undefined
  /** {@link ENTRY_NUMBERS} numbers for each: size, tombstone, expectLastOfKey or `NOTHING`, end of the body. */
  readonly numbers: Float64Array
  readonly bodies: Uint8Array<ArrayBuffer>
}

const ENTRY_NUMBERS = 4

/** The value of `expectLastOfKey` for an entry without a condition. */
const NOTHING = -1

export function packEntryRows(rows: readonly EntryRow[]): PackedEntryRows {
  const numbers = new Float64Array(rows.length * ENTRY_NUMBERS)
  const bodies = new Uint8Array(bytesOf(rows))
  let at = 0
  let end = 0
  for (const { size, tombstone, expectLastOfKey, body } of rows) {
    bodies.set(body, end)
    end += body.byteLength
    numbers[at++] = size
    numbers[at++] = tombstone
    numbers[at++] = expectLastOfKey ?? NOTHING
    numbers[at++] = end
  }
  return {
    id: packTexts(rows, ({ id }) => id),
    clientId: packTexts(rows, ({ clientId }) => clientId),
    metadata: packTexts(rows, ({ metadata }) => metadata),
    tags: packTexts(rows, ({ tags }) => tags),
    key: rows.map(({ key }) => key),
    deduplicationId: packOptional(rows),
    numbers,
    bodies,
  }
}

export function entryRowAt(packed: PackedEntryRows, row: number): EntryRow {
  const { numbers, bodies } = packed
  const at = row * ENTRY_NUMBERS
  const begin = row === 0 ? 0 : numbers[at - 1]
  const expected = numbers[at + 2] ?? NOTHING
  return {
    id: textAt(packed.id, row),
    clientId: textAt(packed.clientId, row),
    size: numbers[at] ?? 0,
    metadata: textAt(packed.metadata, row),
    tags: textAt(packed.tags, row),
    key: packed.key[row] ?? null,
    tombstone: numbers[at + 1] === 1 ? 1 : 0,
    body: bodies.subarray(begin, numbers[at + 3]),
    expectLastOfKey: expected === NOTHING ? undefined : expected,
    deduplicationId: packed.deduplicationId?.[row],
  }
}

function bytesOf(rows: readonly { readonly body: Uint8Array }[]): number {
  let bytes = 0
  for (const { body } of rows) bytes += body.byteLength
  return bytes
}

export function packTexts<T>(rows: readonly T[], read: (row: T) => string): Texts {
  const texts = rows.map(read)
  const first = texts[0] ?? ''
  return texts.every((text) => text === first) ? first : texts
}

export function textAt(texts: Texts, row: number): string {
  return typeof texts === 'string' ? texts : (texts[row] ?? '')
}

function packOptional(
  rows: readonly { readonly deduplicationId: string | undefined }[],
): readonly (string | undefined)[] | undefined {
  const any = rows.some(({ deduplicationId }) => deduplicationId !== undefined)
  return any ? rows.map(({ deduplicationId }) => deduplicationId) : undefined
}
