import type {
  AppendResult,
  BrokerHandle,
  ChannelType,
  QueuePauses,
  SettingsEntry,
  SettingsTable,
} from '@signalbox/broker-core'
import { BrokerError, CHANNEL_TYPES, decodeText, encodeText, isBrokerError } from '@signalbox/broker-core'
import type { KeyedContent, KeyedEntry, KeyedLogFollower } from '@signalbox/broker-core/internal'
import { KeyedLog, parseJsonText } from '@signalbox/broker-core/internal'
import type { GivenSettings } from '@signalbox/http-kit/internal'
import { isJsonObject, problemsText, readChannelSettings } from '@signalbox/http-kit/internal'

import { StoredPauses } from './stored-pauses.ts'

/** The most entries. */
export const MAX_ENTRIES = 1_000

const ENTRY = 'e/'

/** An entry that operators wrote. */
export interface StoredSettings {
  /** The entry as it was given, without defaults. */
  readonly given: GivenSettings
  /** The sequence of its record, for conditional changes. */
  readonly revision: number
  /** The ClientID of the operator who wrote it. */
  readonly changedBy: string
  /** In ms since the epoch. */
  readonly changedAt: number
}

type Target = Pick<GivenSettings, 'type' | 'match'>

interface Known {
  /** Undefined for an entry that this version cannot read. */
  readonly stored: StoredSettings | undefined
  readonly entry: SettingsEntry
}

export interface SettingsLogOptions {
  /** The pauses of queues of the broker. @default the log has none */
  readonly pauses?: QueuePauses | undefined
  /** Receives failures that no caller sees. */
  readonly failed: (error: unknown) => void
}

/**
 * The entries of the channel settings in the log that all nodes share, and those of a file. Each change replaces the
 * entries of the table that the broker and its engine read.
 */
export class ChannelSettingsLog implements AsyncDisposable {
  readonly #log: KeyedLog
  readonly #table: SettingsTable
  /** The pauses of queues; `undefined` if the broker's are not given. */
  readonly pauses: StoredPauses | undefined
  readonly #follower: KeyedLogFollower
  readonly #ended = new AbortController()
  readonly #known = new Map<string, Known>()
  #fromFile: readonly SettingsEntry[] = []

  private constructor(system: BrokerHandle, table: SettingsTable, { failed, pauses }: SettingsLogOptions) {
    this.#log = new KeyedLog(system, '_AGENTS_.channel_settings')
    this.#table = table
    const applied = (sequence: number): Promise<void> => this.#follower.applied(sequence)
    this.pauses = pauses && new StoredPauses({ log: this.#log, pauses, applied, failed })
    this.#follower = this.#log.follow(
      {
        entry: (entry, live) => {
          if (this.pauses?.apply(entry) === true) return
          this.#apply(entry)
          if (live) this.#publish()
        },
        retain: (keys) => {
          for (const key of this.#known.keys()) if (!keys.has(key)) this.#known.delete(key)
          this.#publish()
          this.pauses?.retain(keys)
        },
        failed,
      },
      { signal: this.#ended.signal },
    )
  }

  /**
   * Resolves when the entries are in the table: without them, messages would be delivered by other rules.
   * @param table The table of the broker's engine
   */
  static async open(
    system: BrokerHandle,
    table: SettingsTable,
    options: SettingsLogOptions,
  ): Promise<ChannelSettingsLog> {
    const log = new ChannelSettingsLog(system, table, options)
    await log.#follower.opened
    return log
  }

  /** `false` while changes by other nodes do not arrive; the last entries remain in force. */
  get current(): boolean {
    return this.#follower.current
  }

  entries(): readonly StoredSettings[] {
    return [...this.#known.values()].flatMap(({ stored }) => (stored === undefined ? [] : [stored]))
  }

  /** The entries of the file, which operators cannot change. */
  get fromFile(): readonly SettingsEntry[] {
    return this.#fromFile
  }

  useFile(entries: readonly SettingsEntry[]): void {
    this.#fromFile = entries
    this.#publish()
  }

  /**
   * Writes an entry; resolves when it is durable, and in force on this node.
   * @param given A valid entry; see `readChannelSettings`
   * @param revision The revision that the entry must have; 0 if there must be none. @default any
   * @throws BrokerError ARGUMENT_INVALID, CONFLICT, ENGINE_UNAVAILABLE
   */
  async set(given: GivenSettings, changedBy: string, revision?: number): Promise<StoredSettings> {
    const key = keyOf(given)
    if (!this.#known.has(key) && this.#known.size >= MAX_ENTRIES) {
      const allowed = `at most ${MAX_ENTRIES} entries; remove one, or use a pattern for several channels`
      throw new BrokerError('ARGUMENT_INVALID', `invalid argument match: allowed are ${allowed}`, {
        argument: 'match',
        allowed,
      })
    }
    const content = { body: encodeText(JSON.stringify(given)), tags: { changed_by: changedBy } }
    const { sequence, timestamp } = await this.#write(given, content, revision)
    await this.#follower.applied(sequence)
    return { given, revision: sequence, changedBy, changedAt: timestamp }
  }

  /**
   * Removes an entry; returns `false` if there is none.
   * @param revision The revision that the entry must have. @default any
   * @throws BrokerError CONFLICT, ENGINE_UNAVAILABLE
   */
  async remove(target: Target, revision?: number): Promise<boolean> {
    const key = keyOf(target)
    const last = await this.#log.last(key)
    if (last === undefined || last.tombstone) return false
    const { sequence } = await this.#write(target, undefined, revision)
    await this.#follower.applied(sequence)
    return true
  }

  /** @throws BrokerError CONFLICT, with the revision of the entry as `last` */
  async #write(target: Target, content: KeyedContent | undefined, revision: number | undefined): Promise<AppendResult> {
    try {
      return await this.#log.write(keyOf(target), content, revision)
    } catch (error) {
      if (!isBrokerError(error, 'CONFLICT')) throw error
      const { type, match } = target
      const { last } = error.details
      const message = `the entry for ${type} ${JSON.stringify(match)} has the revision ${String(last)}, not ${revision}; read it again`
      throw new BrokerError('CONFLICT', message, { type, match, last }, { cause: error })
    }
  }

  #apply(entry: KeyedEntry): void {
    const { key, sequence, tombstone, body, tags, timestamp } = entry
    if (!key.startsWith(ENTRY)) return
    if (tombstone) {
      this.#known.delete(key)
      return
    }
    const given = parseJsonText(decodeText(body) ?? '')
    const read = readChannelSettings(given, 'api')
    if ('entry' in read) {
      const changedBy = tags['changed_by'] ?? ''
      const stored = { given: read.given, revision: sequence, changedBy, changedAt: timestamp }
      this.#known.set(key, { stored, entry: read.entry })
      return
    }
    // A newer version wrote it. A schema or groups that are not applied would admit wrong messages, or lose their order.
    const strict = isJsonObject(given) && (given['schema'] !== undefined || given['groups'] !== undefined)
    const { type, match } = targetIn(key)
    this.#known.set(key, {
      stored: undefined,
      entry: { type, match, source: 'api', ...(strict ? { unreadable: true } : {}) },
    })
    throw new TypeError(problemsText(read.problems))
  }

  #publish(): void {
    this.#table.replace([...[...this.#known.values()].map(({ entry }) => entry), ...this.#fromFile])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort()
    await this.#follower.closed
  }
}

function keyOf({ type, match }: Target): string {
  return `${ENTRY}${type}/${match}`
}

/** @throws TypeError for another key */
function targetIn(key: string): { readonly type: ChannelType; readonly match: string } {
  const type = CHANNEL_TYPES.find((each) => key.startsWith(`${ENTRY}${each}/`))
  if (type === undefined) throw new TypeError(`${JSON.stringify(key)} is no key of an entry`)
  return { type, match: key.slice(`${ENTRY}${type}/`.length) }
}
