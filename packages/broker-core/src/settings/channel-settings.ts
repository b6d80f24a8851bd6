import type { ChannelType } from '../channel.ts'

/** The receives of a message of a queue: their number, the delays between them, and their end. */
export interface RetrySettings {
  /** The number of receives before a message moves to the dead-letter queue; 0 means unlimited. */
  readonly max_receive_count: number
  /** The name of another queue; empty if there is none. */
  readonly dead_letter_queue: string
  /** The delay after the first receive, in seconds; 0 means none. */
  readonly min_backoff_seconds: number
  /** The longest delay, in seconds; at least `min_backoff_seconds`. */
  readonly max_backoff_seconds: number
  /** The factor between two delays; at least 1. */
  readonly backoff_factor: number
  /** The part of a delay that is random, from 0 to 1: the delay gets shorter by up to this part. */
  readonly jitter: number
}

/** The pace at which the receivers of a queue get messages. */
export interface ConsumerSettings {
  /** The time until which nothing is received, in RFC 3339 form; null means no pause. */
  readonly paused_until: string | null
  /** The most deliveries in a second; 0 means unlimited. */
  readonly max_per_second: number
  /** The most leased messages; 0 means unlimited. */
  readonly max_in_flight: number
}

/** The delivery of messages that belong together: those of a queue with the same group. */
export interface GroupSettings {
  /** `ordered`: one message of a group at a time, in the order of the sends. `fair`: the groups by turns. */
  readonly mode: 'ordered' | 'fair'
  /** The most leased messages of one group; 0 means unlimited. Always 1 with `ordered`. */
  readonly max_in_flight_per_group: number
}

/** The age and the size of the messages that a queue or an events store keeps. */
export interface RetentionSettings {
  /**
   * The maximum age, in seconds; 0 keeps all. For queues the default expiration of a message. Like the sizes, absent if
   * the server's limit applies.
   */
  readonly max_age_seconds?: number | undefined
  /** The maximum number of messages in a queue; 0 means unlimited. */
  readonly max_messages?: number | undefined
  /** The maximum size, in bytes; 0 means unlimited. */
  readonly max_bytes?: number | undefined
  /** The end of expired messages of a queue: they are removed, or move to the queue's dead-letter queue. */
  readonly on_expiry: 'drop' | 'dead_letter'
  /** Events stores: `true` keeps only the last entry of each key. */
  readonly compact: boolean
}

export interface DeduplicationSettings {
  /** The time in which a repeated send is recognized by its id, in seconds. */
  readonly window_seconds: number
}

/** The JSON Schemas that bodies must match. */
export interface SchemaSettings {
  /** The name of the version for messages that name none. */
  readonly default: string
  /** JSON Schemas (2020-12) by name. A message selects one by its tag `ce_dataschema`. */
  readonly versions: Readonly<Record<string, unknown>>
}

/** The settings of a channel. A member that is absent has no settings: the message's or the server's apply. */
export interface ChannelSettings {
  readonly description?: string | undefined
  readonly retry?: RetrySettings | undefined
  readonly consumers?: ConsumerSettings | undefined
  readonly groups?: GroupSettings | undefined
  readonly retention?: RetentionSettings | undefined
  readonly deduplication?: DeduplicationSettings | undefined
  readonly schema?: SchemaSettings | undefined
  /** `true` if an entry of a newer version has a schema or groups that this version cannot read. */
  readonly unreadable?: true | undefined
}

/** The members of {@link ChannelSettings}. Each comes whole from one entry. */
export const SETTING_MEMBERS = [
  'description',
  'retry',
  'consumers',
  'groups',
  'retention',
  'deduplication',
  'schema',
] as const

export type SettingMember = (typeof SETTING_MEMBERS)[number]

/** Settings for the channels of a type whose names match. A member that is null ends the search: it has no settings. */
export type SettingsEntry = {
  readonly type: ChannelType
  /** A name, or a glob: `*` matches any characters, dots included, and `?` matches one. */
  readonly match: string
  /** An entry of the API wins over one of the file with the same specificity. */
  readonly source: 'api' | 'file'
  readonly unreadable?: true | undefined
} & { readonly [M in SettingMember]?: ChannelSettings[M] | null }

/**
 * Returns the delay after receive number `receives`, in ms:
 * `min(max, min × factor^(receives − 1)) × (1 − jitter × random)`.
 * @param random From 0 to 1
 */
export function retryDelayMs(retry: RetrySettings, receives: number, random = Math.random()): number {
  const { min_backoff_seconds: min, max_backoff_seconds: max, backoff_factor: factor, jitter } = retry
  // The power may be infinite, and 0 times infinity is not a number.
  if (min === 0) return 0
  const seconds = Math.min(max, min * factor ** (receives - 1))
  return Math.round(seconds * 1_000 * (1 - jitter * random))
}
