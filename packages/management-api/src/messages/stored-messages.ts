import type { BrokerHandle, QueueMessage, StoredEvent } from '@signalbox/broker-core'

/** The channel types that keep messages. */
export const STORED_TYPES = ['queues', 'events_store'] as const

export type StoredType = (typeof STORED_TYPES)[number]

/** A channel that keeps messages. */
export interface StoredChannel {
  readonly type: StoredType
  readonly channel: string
}

/** A message that a channel holds. */
export type StoredMessage = QueueMessage | StoredEvent

/** The messages read in one step, and about their bytes. Steps let other requests pass. */
const STEP = 200
const STEP_BYTES = 4 * 1024 * 1024

/** The first message to read. Without either, reading starts at the end that comes first. */
export interface ReadingStart {
  readonly fromSequence?: number | undefined
  /** In ms since the epoch. Only events stores are ordered by time. */
  readonly fromTimestamp?: number | undefined
}

/** Reads a channel in steps, oldest message first. Leased and delayed messages are not read. */
export async function* oldestFirst(
  broker: BrokerHandle,
  { type, channel }: StoredChannel,
  { fromSequence = 1, fromTimestamp }: ReadingStart = {},
  step = STEP,
): AsyncGenerator<readonly StoredMessage[]> {
  const limits = { maxMessages: Math.min(step, STEP), maxBytes: STEP_BYTES }
  let start: { fromSequence: number } | { fromTimestamp: number } =
    fromTimestamp === undefined ? { fromSequence } : { fromTimestamp }
  for (;;) {
    const batch =
      type === 'queues'
        ? await broker.queues.peek(channel, { ...limits, ...start })
        : await broker.eventsStore.read(channel, { ...limits, ...start })
    const last = batch.at(-1)
    if (last === undefined) return
    yield batch
    start = { fromSequence: last.sequence + 1 }
  }
}

/** Reads an events store in steps, newest event first. */
export async function* newestFirst(
  broker: BrokerHandle,
  channel: string,
  { fromSequence = Number.MAX_SAFE_INTEGER }: ReadingStart = {},
  step = STEP,
): AsyncGenerator<readonly StoredMessage[]> {
  const { eventsStore } = await broker.channels.info('events_store', channel)
  if (eventsStore === undefined || eventsStore.entries === 0) return
  const { bytes, entries, firstSequence, lastSequence } = eventsStore
  // A read with a limit of bytes would return the oldest events of the step.
  const most = Math.max(1, Math.min(step, STEP, Math.floor((STEP_BYTES * entries) / Math.max(1, bytes))))
  for (let before = Math.min(fromSequence, lastSequence) + 1; before > firstSequence;) {
    const from = Math.max(firstSequence, before - most)
    const batch = await broker.eventsStore.read(channel, { fromSequence: from, maxMessages: before - from })
    yield batch.filter(({ sequence }) => sequence < before).toReversed()
    before = from
  }
}

/** Returns the first bytes of a body, without an incomplete character at the end. */
export function firstBytes(body: Uint8Array, bytes: number): Uint8Array {
  if (body.byteLength <= bytes) return body
  let end = bytes
  for (let back = 0; back < 3 && end > 0 && isContinuation(body[end]); back++) end--
  return body.subarray(0, isContinuation(body[end]) ? bytes : end)
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
