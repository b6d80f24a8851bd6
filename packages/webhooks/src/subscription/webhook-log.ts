import { setTimeout as delay } from 'node:timers/promises'

import type { BrokerHandle, StoredEvent } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import { createCompactedLog, readWholeLog } from '@signalbox/broker-core/internal'

/** The compacted events store of subscriptions, positions and nodes. */
const CHANNEL = '_AGENTS_.webhooks'

/** The pause before a subscription that ended or failed is made again, in ms. */
const RETRY_MS = 1_000

const NOTHING = new Uint8Array(0)

/** The last value of a key. */
export interface LogEntry {
  readonly key: string
  /** The position of the entry, which grows with each entry of the log. */
  readonly sequence: number
  /** The parsed value; `undefined` if the key was deleted. */
  readonly value: unknown
}

/** Receives the entries of a {@link WebhookLog}. Its methods must not throw. */
export interface LogSink {
  /** Returns `true` for an entry that need not be read: the sink knows it, or a later one of its key. */
  knows(key: string, sequence: number): boolean
  entry(entry: LogEntry): void
  /** Called before the last entries of all keys follow again, with the history complete when it returns. */
  complete(keys: ReadonlySet<string>): void
  failed(error: unknown): void
}

/** The log that all nodes share. It keeps the last entry of each key. */
export class WebhookLog {
  readonly #system: BrokerHandle

  constructor(system: BrokerHandle) {
    this.#system = system
  }

  /**
   * Writes a value, or deletes the key, if the last entry of the key has the sequence `expected`, or, for 0, if there is
   * none. Without `expected` the write has no condition. Resolves with the sequence when the entry is durable.
   * @throws BrokerError CONFLICT, ENGINE_UNAVAILABLE
   */
  async write(key: string, value: object | undefined, expected?: number): Promise<number> {
    const content =
      value === undefined ? { body: NOTHING, tombstone: true } : { body: encodeText(JSON.stringify(value)) }
    const condition = expected === undefined ? {} : { expectLastOfKey: expected }
    const { sequence } = await this.#system.eventsStore.publish(CHANNEL, { ...content, key, ...condition })
    return sequence
  }

  /** Returns the last entry of a key, whichever node wrote it. @throws BrokerError ENGINE_UNAVAILABLE */
  async last(key: string): Promise<LogEntry | undefined> {
    const event = await this.#system.eventsStore.getLast(CHANNEL, key)
    return event && entryOf(event)
  }

  /** Creates the log if it does not exist. @throws BrokerError ENGINE_UNAVAILABLE */
  create(): Promise<void> {
    return createCompactedLog(this.#system, CHANNEL)
  }

  /** Delivers the last entries of all keys, then each new entry, until the signal is aborted. Never rejects. */
  async follow(sink: LogSink, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.create()
        const keys = new Set<string>()
        const next = await readWholeLog(
          this.#system,
          CHANNEL,
          (event) => {
            const entry = entryOf(event)
            if (entry === undefined) return
            if (entry.value === undefined) keys.delete(entry.key)
            else keys.add(entry.key)
            sink.entry(entry)
          },
          signal,
        )
        const start = { from: 'sequence', sequence: next } as const
        const subscription = await this.#system.eventsStore.subscribe(CHANNEL, start, { signal }, (event) => {
          // Most entries are positions that this node wrote.
          if (event.key !== undefined && sink.knows(event.key, event.sequence)) return
          const entry = entryOf(event)
          if (entry !== undefined) sink.entry(entry)
        })
        sink.complete(keys)
        const error = await subscription.closed
        if (error !== undefined && !signal.aborted) sink.failed(error)
      } catch (error) {
        if (!signal.aborted) sink.failed(error)
      }
      await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => {})
    }
  }
}

function entryOf({ key, sequence, body, tombstone }: StoredEvent): LogEntry | undefined {
  if (key === undefined) return undefined
  if (tombstone) return { key, sequence, value: undefined }
  try {
    const value: unknown = JSON.parse(decodeText(body) ?? '')
    return { key, sequence, value }
  } catch {
    // An entry that this version cannot read has no value that it may overwrite.
    return { key, sequence, value: null }
  }
}
