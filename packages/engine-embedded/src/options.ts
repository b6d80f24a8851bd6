import type { ChannelType, EngineOptions } from '@signalbox/broker-core/engine'
import type { OptionTypes } from '@signalbox/broker-core/internal'
import { checkOptions, ENGINE_OPTION_TYPES, engineSettingsOf, messageOf } from '@signalbox/broker-core/internal'

import { EmbeddedEngineError } from './errors.ts'
import { DEFAULT_MAX_CHANNELS } from './settings.ts'

/** The options of {@link openEmbeddedEngine}. */
export interface EmbeddedEngineOptions extends EngineOptions {
  /** The folder of the store; created if missing. Only one process can open it at a time. */
  readonly path: string
  /** The maximum message size (body, metadata and tags together), in bytes; 1 to 512 MiB. @default 67108864 */
  readonly maxMessageBytes?: number
  /** The maximum number of channels, all types together; 0 means unlimited. @default 10000 */
  readonly maxChannels?: number
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

/** The timing of reopening a failed store. */
export interface Retries {
  /** The wait before the store is reopened, in ms; doubles after each failure, up to `lastMs`. */
  readonly firstMs: number
  readonly lastMs: number
  /** The number of failures without `steadyMs` of work in between, after which the store stays closed. */
  readonly limit: number
  readonly steadyMs: number
}

/** The options with all defaults. */
export type Settings = Required<EmbeddedEngineOptions>

const MAX_MESSAGE_BYTES = 512 * 1024 * 1024

const OPTION_TYPES: OptionTypes<EmbeddedEngineOptions> = {
  path: 'any',
  ...ENGINE_OPTION_TYPES,
  onCommit: 'function',
  onProblem: 'function',
  now: 'function',
}

/** Validates the options and adds the defaults. @throws EmbeddedEngineError OPTION_INVALID */
export function settingsOf(options: EmbeddedEngineOptions): Settings {
  try {
    return checked(options)
  } catch (error) {
    throw new EmbeddedEngineError('OPTION_INVALID', messageOf(error), undefined, { cause: error })
  }
}

/** @throws TypeError, RangeError */
function checked(options: EmbeddedEngineOptions): Settings {
  checkOptions('openEmbeddedEngine', options, OPTION_TYPES)
  if (typeof options.path !== 'string' || options.path.trim() === '') {
    throw new TypeError('invalid option path: it must be the path of a folder')
  }
  return {
    ...engineSettingsOf(options, { maxChannels: DEFAULT_MAX_CHANNELS, largestMessageBytes: MAX_MESSAGE_BYTES }),
    path: options.path,
    onCommit: options.onCommit ?? (() => {}),
    onProblem: options.onProblem ?? (() => {}),
    now: options.now ?? Date.now,
  }
}
