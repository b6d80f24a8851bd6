import type { ChannelType } from '@signalbox/broker-core/engine'
import { DURABLE_GROUP_MS, MAX_DURABLE_GROUPS } from '@signalbox/broker-core/engine'
import type { OptionTypes } from '@signalbox/broker-core/internal'
import { checkOptions, messageOf } from '@signalbox/broker-core/internal'

import { EmbeddedEngineError } from './errors.ts'
import { DEFAULT_MAX_CHANNELS } from './settings.ts'

/** The options of {@link openEmbeddedEngine}. */
export interface EmbeddedEngineOptions {
  /** The folder of the store; created if missing. Only one process can open it at a time. */
  readonly path: string
  /** The maximum message size (body, metadata and tags together), in bytes; 1 to 512 MiB. @default 67108864 */
  readonly maxMessageBytes?: number
  /**
   * The maximum number of channels, all types together; 0 is unlimited. Channels of the broker neither count nor are
   * refused. @default 10000
   */
  readonly maxChannels?: number
  /** The maximum number of messages in a queue, including delayed and leased ones; 0 is unlimited. @default 0 */
  readonly queueMaxMessages?: number
  /** The maximum size of all messages in a queue, in bytes; 0 is unlimited. @default 0 */
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
  /**
   * Called after every group commit with its number of operations, its message bytes, and its duration including the
   * sync.
   */
  readonly onCommit?: (commit: CommitInfo) => void
  /** Called when a problem starts or ends, for the log. Must not throw. @default problems are not reported */
  readonly onProblem?: (problem: EmbeddedEngineProblem) => void
  /**
   * Returns the wall-clock time, in ms since the epoch. Leases do not use it: they use a monotonic clock. @default
   * Date.now
   */
  readonly now?: () => number
}

export interface CommitInfo {
  readonly operations: number
  readonly bytes: number
  readonly durationMs: number
}

export interface EmbeddedEngineProblem {
  /**
   * `full`: writes fail because the disk is full. `failed`: the store is being reopened, or stays closed. `healed`:
   * either problem is over. `damaged`: something cannot be read; reported once for each place. `listener`: a
   * subscriber's listener threw.
   */
  readonly kind: 'full' | 'failed' | 'healed' | 'damaged' | 'listener'
  readonly message: string
  /** With `damaged`: the affected channels, if known. */
  readonly channels?: readonly { readonly type: ChannelType; readonly name: string }[]
  readonly error?: unknown
}

/** The options with all defaults. */
export interface Settings {
  readonly path: string
  readonly maxMessageBytes: number
  readonly maxChannels: number
  readonly queueMaxMessages: number
  readonly queueMaxBytes: number
  readonly eventsStoreMaxAgeMs: number
  readonly eventsStoreMaxBytes: number
  readonly durableGroupMs: number
  readonly maxDurableGroups: number
  readonly onCommit: (commit: CommitInfo) => void
  readonly onProblem: (problem: EmbeddedEngineProblem) => void
  readonly now: () => number
}

const MAX_MESSAGE_BYTES = 512 * 1024 * 1024

const OPTION_TYPES: OptionTypes<EmbeddedEngineOptions> = {
  path: 'any',
  maxMessageBytes: 'any',
  maxChannels: 'any',
  queueMaxMessages: 'any',
  queueMaxBytes: 'any',
  eventsStoreMaxAgeMs: 'any',
  eventsStoreMaxBytes: 'any',
  durableGroupMs: 'any',
  maxDurableGroups: 'any',
  onCommit: 'function',
  onProblem: 'function',
  now: 'function',
}

/** @throws EmbeddedEngineError OPTION_INVALID */
function checked(options: EmbeddedEngineOptions): void {
  try {
    checkOptions('openEmbeddedEngine', options, OPTION_TYPES)
  } catch (error) {
    throw new EmbeddedEngineError('OPTION_INVALID', messageOf(error), undefined, { cause: error })
  }
}

/** Validates the options and adds the defaults. @throws EmbeddedEngineError OPTION_INVALID */
export function settingsOf(options: EmbeddedEngineOptions): Settings {
  checked(options)
  if (typeof options.path !== 'string' || options.path.trim() === '') {
    throw new EmbeddedEngineError('OPTION_INVALID', 'invalid option path: it must be the path of a folder')
  }
  return {
    path: options.path,
    maxMessageBytes: whole('maxMessageBytes', options.maxMessageBytes, 64 * 1024 * 1024, 1, MAX_MESSAGE_BYTES),
    // The port's limit is always a number; an unreachable one means unlimited.
    maxChannels: whole('maxChannels', options.maxChannels, DEFAULT_MAX_CHANNELS) || Number.MAX_SAFE_INTEGER,
    queueMaxMessages: whole('queueMaxMessages', options.queueMaxMessages, 0),
    queueMaxBytes: whole('queueMaxBytes', options.queueMaxBytes, 0),
    eventsStoreMaxAgeMs: whole('eventsStoreMaxAgeMs', options.eventsStoreMaxAgeMs, 0),
    eventsStoreMaxBytes: whole('eventsStoreMaxBytes', options.eventsStoreMaxBytes, 0),
    durableGroupMs: whole('durableGroupMs', options.durableGroupMs, DURABLE_GROUP_MS, 1_000),
    maxDurableGroups: whole('maxDurableGroups', options.maxDurableGroups, MAX_DURABLE_GROUPS, 1),
    onCommit: options.onCommit ?? (() => {}),
    onProblem: options.onProblem ?? (() => {}),
    now: options.now ?? Date.now,
  }
}

function whole(
  name: string,
  value: number | undefined,
  byDefault: number,
  min = 0,
  max = Number.MAX_SAFE_INTEGER,
): number {
  const given = value ?? byDefault
  if (Number.isSafeInteger(given) && given >= min && given <= max) return given
  const allowed = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  throw new EmbeddedEngineError(
    'OPTION_INVALID',
    `invalid option ${name}: ${String(given)}; allowed is a whole number ${allowed}`,
  )
}
