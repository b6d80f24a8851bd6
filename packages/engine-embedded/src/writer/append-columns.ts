import type { AppendOperation } from './operations.ts'

/** Appends of one small entry each, packed as columns; see `Post`. */
export interface AppendColumns {
  readonly channel: readonly string[]
  readonly id: readonly string[]
  readonly clientId: readonly string[]
  readonly metadata: readonly string[]
  readonly tags: readonly string[]
  readonly key: readonly (string | null)[]
  /** {@link NUMBERS} numbers for each: now, size, tombstone, expectLastOfKey or `NOTHING`, end of the body. */
  readonly numbers: Float64Array
  readonly bodies: Uint8Array
}

const NUMBERS = 5

/** The value of `expectLastOfKey` for an append without a condition. */
const NOTHING = -1

/** Returns `true` for an append that can be packed, if its body is small. */
export function isPlainAppend({ entry }: AppendOperation, smallBody: number): boolean {
  return entry.deduplicationId === undefined && entry.columns[7].byteLength <= smallBody
}

export function packAppends(appends: readonly AppendOperation[]): AppendColumns {
  const bytes = appends.reduce((sum, { entry }) => sum + entry.columns[7].byteLength, 0)
  const numbers = new Float64Array(appends.length * NUMBERS)
  const bodies = new Uint8Array(bytes)
  let at = 0
  let end = 0
  for (const { now, entry } of appends) {
    const [, , size, , , , tombstone, body] = entry.columns
    bodies.set(body, end)
    end += body.byteLength
    numbers[at++] = now
    numbers[at++] = size
    numbers[at++] = tombstone
    numbers[at++] = entry.expectLastOfKey ?? NOTHING
    numbers[at++] = end
  }
  return {
    channel: appends.map(({ channel }) => channel),
    id: appends.map(({ entry }) => entry.columns[0]),
    clientId: appends.map(({ entry }) => entry.columns[1]),
    metadata: appends.map(({ entry }) => entry.columns[3]),
    tags: appends.map(({ entry }) => entry.columns[4]),
    key: appends.map(({ entry }) => entry.columns[5]),
    numbers,
    bodies,
  }
}

/** Returns a packed append. */
export function appendAt(columns: AppendColumns, row: number): AppendOperation {
  const { numbers, bodies } = columns
  const at = row * NUMBERS
  const begin = row === 0 ? 0 : numbers[at - 1]
  const expected = numbers[at + 3] ?? NOTHING
  return {
    kind: 'append',
    channel: columns.channel[row] ?? '',
    now: numbers[at] ?? 0,
    entry: {
      columns: [
        columns.id[row] ?? '',
        columns.clientId[row] ?? '',
        numbers[at + 1] ?? 0,
        columns.metadata[row] ?? '',
        columns.tags[row] ?? '',
        columns.key[row] ?? null,
        numbers[at + 2] === 1 ? 1 : 0,
        bodies.subarray(begin, numbers[at + 4]),
      ],
      ...(expected === NOTHING ? {} : { expectLastOfKey: expected }),
    },
  }
}
