import type { OptionTypes } from '../options.ts'

/** The time in which an engine recognizes a repeated send by its deduplication id, in ms. */
export const DEDUPLICATION_MS = 2 * 60_000

/** The time for which a tombstone remains in a compacted events store for its subscribers, in ms. */
export const TOMBSTONE_MS = 60 * 60_000

/** The time for which the position of a durable group is kept after its last subscriber left, in ms: seven days. */
export const DURABLE_GROUP_MS = 7 * 24 * 60 * 60_000

/** The number of durable groups that one events store may have. */
export const MAX_DURABLE_GROUPS = 1_000

/** The limits that every engine takes as options. */
export interface EngineOptions {
  /** The maximum message size (body, metadata and tags together), in bytes; at least 1. @default 67108864 */
  readonly maxMessageBytes?: number
  /**
   * The maximum number of channels, all types together; 0 means unlimited. Channels of the broker neither count nor are
   * refused. @default the engine's limit
   */
  readonly maxChannels?: number
  /** The maximum number of messages in a queue, including delayed and leased ones; 0 means unlimited. @default 0 */
  readonly queueMaxMessages?: number
  /** The maximum size of all messages in a queue, in bytes; 0 means unlimited. @default 0 */
  readonly queueMaxBytes?: number
  /**
   * The maximum age of entries in events stores, in ms; 0 keeps all. A channel's own setting overrides it. @default 0
   */
  readonly eventsStoreMaxAgeMs?: number
  /**
   * The maximum size of an events store, in bytes; beyond it the oldest entries are removed. 0 keeps all. A channel's
   * own setting overrides it. @default 0
   */
  readonly eventsStoreMaxBytes?: number
  /**
   * The time for which the position of a durable group is kept after its last subscriber left, in ms; at least 1000.
   * @default 604800000
   */
  readonly durableGroupMs?: number
  /** The maximum number of durable groups of an events store; at least 1. @default 1000 */
  readonly maxDurableGroups?: number
}

/** The types of {@link EngineOptions}: {@link engineSettingsOf} checks their values. */
export const ENGINE_OPTION_TYPES: OptionTypes<EngineOptions> = {
  maxMessageBytes: 'any',
  maxChannels: 'any',
  queueMaxMessages: 'any',
  queueMaxBytes: 'any',
  eventsStoreMaxAgeMs: 'any',
  eventsStoreMaxBytes: 'any',
  durableGroupMs: 'any',
  maxDurableGroups: 'any',
}

/** The limits in which engines differ. */
interface EngineDefaults {
  /** The default of `maxChannels`. */
  readonly maxChannels: number
  /** The largest allowed `maxMessageBytes`. @default no limit */
  readonly largestMessageBytes?: number
}

/** Validates the options and adds the defaults. @throws RangeError */
export function engineSettingsOf(
  options: EngineOptions,
  { maxChannels, largestMessageBytes }: EngineDefaults,
): Required<EngineOptions> {
  const { maxMessageBytes, durableGroupMs, maxDurableGroups } = options
  return {
    maxMessageBytes: wholeOption('maxMessageBytes', maxMessageBytes, 64 * 1024 * 1024, 1, largestMessageBytes),
    // The port's limit is always a number; an unreachable one means unlimited.
    maxChannels: wholeOption('maxChannels', options.maxChannels, maxChannels) || Number.MAX_SAFE_INTEGER,
    queueMaxMessages: wholeOption('queueMaxMessages', options.queueMaxMessages, 0),
    queueMaxBytes: wholeOption('queueMaxBytes', options.queueMaxBytes, 0),
    eventsStoreMaxAgeMs: wholeOption('eventsStoreMaxAgeMs', options.eventsStoreMaxAgeMs, 0),
    eventsStoreMaxBytes: wholeOption('eventsStoreMaxBytes', options.eventsStoreMaxBytes, 0),
    durableGroupMs: wholeOption('durableGroupMs', durableGroupMs, DURABLE_GROUP_MS, 1_000),
    maxDurableGroups: wholeOption('maxDurableGroups', maxDurableGroups, MAX_DURABLE_GROUPS, 1),
  }
}

/** Returns the value of an option that is a whole number, or its default. @throws RangeError */
export function wholeOption(
  name: string,
  value: number | undefined,
  byDefault: number,
  min = 0,
  max = Number.MAX_SAFE_INTEGER,
): number {
  const given = value ?? byDefault
  if (Number.isSafeInteger(given) && given >= min && given <= max) return given
  const allowed = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  throw new RangeError(`invalid option ${name}: ${String(given)}; allowed is a whole number ${allowed}`)
}
