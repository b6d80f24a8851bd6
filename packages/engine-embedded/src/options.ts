import type { ChannelType } from '@signalbox/broker-core/engine'

import { EmbeddedEngineError } from './errors.ts'
import { DEFAULT_MAX_CHANNELS } from './settings.ts'

/** How {@link openEmbeddedEngine} opens a store. */
export interface EmbeddedEngineOptions {
  /** The folder of the store; created when missing. One process at a time can open it. */
  readonly path: string
  /** The largest message (body, metadata and tags together), in bytes; 1 to 512 MiB. @default 67108864 */
  readonly maxMessageBytes?: number
  /** The most channels of all types together; the broker's own are neither counted nor refused (C4). 0 is no limit. @default 10000 */
  readonly maxChannels?: number
  /** The most messages one queue holds, delayed and leased ones included (C4). 0 is no limit. @default 0 */
  readonly queueMaxMessages?: number
  /** The most bytes of messages one queue holds (C4). 0 is no limit. @default 0 */
  readonly queueMaxBytes?: number
  /** Entries of events stores older than this go, in milliseconds; a channel's own setting wins. 0 keeps all. @default 0 */
  readonly eventsStoreMaxAgeMs?: number
  /** The oldest entries of an events store go past this many bytes; a channel's own setting wins. 0 keeps all. @default 0 */
  readonly eventsStoreMaxBytes?: number
  /** Told of every group commit: how many operations and message bytes shared it, and how long it took with its sync. */
  readonly onCommit?: (commit: CommitInfo) => void
  /** Told when something is wrong or well again, for the log. Must not throw. */
  readonly onProblem?: (problem: EmbeddedEngineProblem) => void
  /** The wall clock, milliseconds since the epoch. Leases do not use it: they end by a monotonic clock. @default Date.now */
  readonly now?: () => number
}

export interface CommitInfo {
  readonly operations: number
  readonly bytes: number
  readonly durationMs: number
}

export interface EmbeddedEngineProblem {
  /**
   * `full`: writes fail for lack of space · `failed`: the store is being reopened, or stays closed · `healed`: either is
   * over · `damaged`: something cannot be read, told once for each place · `listener`: a subscriber's listener threw.
   */
  readonly kind: 'full' | 'failed' | 'healed' | 'damaged' | 'listener'
  readonly message: string
  /** With `damaged`: the channels that it concerns, as far as they are known. */
  readonly channels?: readonly { readonly type: ChannelType; readonly name: string }[]
  readonly error?: unknown
}

/** The options with every default filled in. */
export interface Settings {
  readonly path: string
  readonly maxMessageBytes: number
  readonly maxChannels: number
  readonly queueMaxMessages: number
  readonly queueMaxBytes: number
  readonly eventsStoreMaxAgeMs: number
  readonly eventsStoreMaxBytes: number
  readonly onCommit: (commit: CommitInfo) => void
  readonly onProblem: (problem: EmbeddedEngineProblem) => void
  readonly now: () => number
}

const MAX_MESSAGE_BYTES = 512 * 1024 * 1024

/** @throws EmbeddedEngineError OPTION_INVALID */
export function settingsOf(options: EmbeddedEngineOptions): Settings {
  if (typeof options.path !== 'string' || options.path.trim() === '') {
    throw new EmbeddedEngineError('OPTION_INVALID', 'invalid option path: it must name a folder')
  }
  return {
    path: options.path,
    maxMessageBytes: whole('maxMessageBytes', options.maxMessageBytes, 64 * 1024 * 1024, 1, MAX_MESSAGE_BYTES),
    // The limit is always a number on the port; what cannot be reached is no limit.
    maxChannels: whole('maxChannels', options.maxChannels, DEFAULT_MAX_CHANNELS) || Number.MAX_SAFE_INTEGER,
    queueMaxMessages: whole('queueMaxMessages', options.queueMaxMessages, 0),
    queueMaxBytes: whole('queueMaxBytes', options.queueMaxBytes, 0),
    eventsStoreMaxAgeMs: whole('eventsStoreMaxAgeMs', options.eventsStoreMaxAgeMs, 0),
    eventsStoreMaxBytes: whole('eventsStoreMaxBytes', options.eventsStoreMaxBytes, 0),
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
