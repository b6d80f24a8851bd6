import type { BrokerHandle } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import type { KeyedContent, KeyedEntry, KeyedLogFollower } from '@signalbox/broker-core/internal'
import { KeyedLog, parseJsonText } from '@signalbox/broker-core/internal'

/** The compacted events store of subscriptions, positions and nodes. */
const CHANNEL = '_AGENTS_.webhooks'

/** The last value of a key. */
export interface LogEntry {
  readonly key: string
  /** The position of the entry, which grows with each entry of the log. */
  readonly sequence: number
  /** The parsed value; `undefined` if the key was deleted. */
  readonly value: unknown
}

/** Receives the entries of a {@link WebhookLog}. */
interface LogSink {
  /** Returns `true` for an entry that need not be read: the sink knows it, or a later one of its key. */
  knows(key: string, sequence: number): boolean
  entry(entry: LogEntry): void
  /** Called when the last entries of all keys were read: keys that are not listed were deleted. */
  retain(keys: ReadonlySet<string>): void
  /** Called when later entries arrive as they are written. */
  current(): void
  failed(error: unknown): void
}

/** The log that all nodes share, with JSON values. It keeps the last entry of each key. */
export class WebhookLog {
  readonly #log: KeyedLog

  constructor(system: BrokerHandle) {
    this.#log = new KeyedLog(system, CHANNEL)
  }

  /**
   * Writes a value, or deletes the key, if the last entry of the key has the sequence `expected`, or, for 0, if there is
   * none. Without `expected` the write has no condition. Resolves with the sequence when the entry is durable.
   * @throws BrokerError CONFLICT, ENGINE_UNAVAILABLE
   */
  async write(key: string, value: object | undefined, expected?: number): Promise<number> {
    const { sequence } = await this.#log.write(key, value && contentOf(value), expected)
    return sequence
  }

  /** Returns the last entry of a key, whichever node wrote it. @throws BrokerError ENGINE_UNAVAILABLE */
  async last(key: string): Promise<LogEntry | undefined> {
    const entry = await this.#log.last(key)
    return entry && parsed(entry)
  }

  /** Returns the last entry of a key, after writing the first one if there is none. @throws BrokerError ENGINE_UNAVAILABLE */
  async ensure(key: string, first: () => object): Promise<LogEntry | undefined> {
    const entry = await this.#log.ensure(key, () => contentOf(first()))
    return entry && parsed(entry)
  }

  /** Delivers the last entries of all keys, then each new entry, until the signal is aborted. */
  follow(sink: LogSink, signal: AbortSignal): KeyedLogFollower {
    return this.#log.follow(
      {
        entry(entry) {
          // Most entries are positions that this node wrote.
          if (!sink.knows(entry.key, entry.sequence)) sink.entry(parsed(entry))
        },
        retain: (keys) => sink.retain(keys),
        current: () => sink.current(),
        failed: (error) => sink.failed(error),
      },
      { signal },
    )
  }
}

function contentOf(value: object): KeyedContent {
  return { body: encodeText(JSON.stringify(value)) }
}

function parsed({ key, sequence, body, tombstone }: KeyedEntry): LogEntry {
  if (tombstone) return { key, sequence, value: undefined }
  try {
    const value = parseJsonText(decodeText(body) ?? '')
    return { key, sequence, value }
  } catch {
    // An entry that this version cannot read has no value that it may overwrite.
    return { key, sequence, value: null }
  }
}
