import type { StoredType } from '../channel.ts'
import type { EngineOptions } from '../engine/engine-options.ts'
import { DEDUPLICATION_MS } from '../engine/engine-options.ts'
import type { EventsStoreAppend } from '../engine/events-store-engine.ts'
import type { RetentionSettings, SettingsEntry } from './channel-settings.ts'
import { groupOf } from './message-groups.ts'
import type { SettingsTable } from './settings-table.ts'

/** Returns what a channel keeps; undefined if the server's limits apply. */
export function retentionOf(settings: SettingsTable, type: StoredType, channel: string): RetentionSettings | undefined {
  return settings.active ? settings.of(type, channel).retention : undefined
}

/** A limit of a queue, with the setting that it comes from. */
export interface QueueLimit {
  /** 0 means unlimited. */
  readonly limit: number
  readonly setting: string
}

/** Returns the limits of a queue: those of its settings win over the server's. */
export function queueLimitsOf(
  settings: SettingsTable,
  queue: string,
  { queueMaxMessages, queueMaxBytes }: Required<Pick<EngineOptions, 'queueMaxMessages' | 'queueMaxBytes'>>,
): Record<'messages' | 'bytes', QueueLimit> {
  const { max_messages: messages, max_bytes: bytes } = retentionOf(settings, 'queues', queue) ?? {}
  return {
    messages:
      messages === undefined
        ? { limit: queueMaxMessages, setting: 'QUEUE_MAX_MESSAGES' }
        : { limit: messages, setting: 'retention.max_messages' },
    bytes:
      bytes === undefined
        ? { limit: queueMaxBytes, setting: 'QUEUE_MAX_BYTES' }
        : { limit: bytes, setting: 'retention.max_bytes' },
  }
}

/** Returns the age at which messages of a queue expire that were sent without an expiration, in ms; 0 means never. */
export function maxAgeMsOf(settings: SettingsTable, queue: string): number {
  return (retentionOf(settings, 'queues', queue)?.max_age_seconds ?? 0) * 1_000
}

/** Returns when a message of a queue expires, in ms since the epoch; 0 means never. @param maxAgeMs 0 means none */
export function expiryOf(
  { timestamp, expiresAt }: { readonly timestamp: number; readonly expiresAt: number },
  maxAgeMs: number,
): number {
  return expiresAt > 0 || maxAgeMs === 0 ? expiresAt : timestamp + maxAgeMs
}

/** The parts of an expired message that decide what happens to it. */
export interface ExpiredMessage {
  /** The name of its queue. */
  readonly channel: string
  readonly deadLetterQueue: string
  /** `true` if the message came from another queue as a dead letter: it has the tag `dlq_source`. */
  readonly isDeadLetter: boolean
}

/** Returns the dead-letter queue that an expired message moves to; empty if the message is removed. */
export function expiredTarget(
  settings: SettingsTable,
  { channel, deadLetterQueue, isDeadLetter }: ExpiredMessage,
): string {
  // Dead letters are never moved on, so that no message goes in circles.
  if (isDeadLetter || retentionOf(settings, 'queues', channel)?.on_expiry !== 'dead_letter') return ''
  const target = deadLetterQueue || (settings.of('queues', channel).retry?.dead_letter_queue ?? '')
  return target === channel ? '' : target
}

/** Returns the time in which a repeated send to a channel is recognized, in ms. */
export function deduplicationMsOf(settings: SettingsTable, type: StoredType, channel: string): number {
  const given = settings.active ? settings.of(type, channel).deduplication : undefined
  return given === undefined ? DEDUPLICATION_MS : given.window_seconds * 1_000
}

/** Returns whether an events store is to keep only the last entry of each key. */
export function isCompact(settings: SettingsTable, store: string): boolean {
  return retentionOf(settings, 'events_store', store)?.compact === true
}

/** Returns the key of a new entry: its own one, or in a store with the setting `compact` its group. */
export function entryKeyOf(
  settings: SettingsTable,
  store: string,
  { key, tags }: Pick<EventsStoreAppend, 'key' | 'tags'>,
): string | undefined {
  return key ?? (isCompact(settings, store) ? groupOf(tags) || undefined : undefined)
}

/**
 * Returns the reason why a new entry of the settings cannot be in force: it would compact an events store that has
 * entries, whose earlier entries have no keys. Undefined if there is none.
 * @param stores The events stores that are not compacted yet
 */
export async function compactProblem<Store extends { readonly name: string }>(
  settings: SettingsTable,
  entry: SettingsEntry,
  stores: Iterable<Store>,
  entriesOf: (store: Store) => number | Promise<number>,
): Promise<string | undefined> {
  if (entry.type !== 'events_store' || entry.retention?.compact !== true) return undefined
  const after = settings.with(entry)
  for (const store of stores) {
    if (!isCompact(after, store.name) || (await entriesOf(store)) === 0) continue
    return `retention.compact: the events store ${JSON.stringify(store.name)} has entries, and only an empty one can be compacted; delete it, or use another`
  }
  return undefined
}
