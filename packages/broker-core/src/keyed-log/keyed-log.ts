import type { BrokerHandle } from '../broker.ts'
import type { ChannelOptions } from '../engine/channel-engine.ts'
import type { AppendResult } from '../engine/events-store-engine.ts'
import type { Subscription } from '../engine/subscription.ts'
import { isBrokerError, messageOf } from '../errors.ts'
import type { StoredEventInput } from '../handle/events-store.ts'
import type { StoredEvent } from '../message.ts'
import { keepSubscribed } from './retry.ts'

/** The last entry of a key. One with `tombstone` deletes the key. */
export type KeyedEntry = StoredEvent & { readonly key: string }

/** The content of an entry. */
export type KeyedContent = Pick<StoredEventInput, 'body' | 'metadata' | 'tags'>

/** Receives the entries of a {@link KeyedLog} in the order of the log. */
export interface KeyedLogSink {
  /** Called before the last entries of all keys are read: at the start, and after an interruption. */
  readonly restart?: () => void
  /**
   * Called for each entry, and not again for one that it throws on: the error is reported, and the next entry follows.
   * @param live `true` for an entry that was written while this node followed; `false` for history
   */
  readonly entry: (entry: KeyedEntry, live: boolean) => void
  /** Called when the last entries of all keys were read: keys that are not listed have no value any more. */
  readonly retain?: (keys: ReadonlySet<string>) => void
  /** Called when later entries arrive as they are written. */
  readonly current?: () => void
  /** Receives failures that no caller sees. */
  readonly failed: (error: unknown) => void
}

export interface FollowOptions {
  /** Ends the following. */
  readonly signal: AbortSignal
  /** Returns `false` for an error that ends the following if the log was never read. @default always `true` */
  readonly mayRetry?: (error: unknown) => boolean
}

/** The retention of a log that keeps the last entry of each key forever. */
const KEEP_ALL = { maxAgeMs: 0, maxBytes: 0 }

const NOTHING = new Uint8Array(0)

/** The most entries, and about the most bytes, in one page of the history. */
const PAGE = 1_000
const PAGE_BYTES = 4 * 1024 * 1024

/**
 * A durable map that all nodes share: a compacted events store, which keeps the last entry of each key. Nodes write
 * under the condition that they know the last entry, and follow the log to know all entries.
 */
export class KeyedLog {
  readonly channel: string
  readonly #system: BrokerHandle
  readonly #options: ChannelOptions
  #created: Promise<unknown> | undefined

  /**
   * @param system The handle for reserved channels
   * @param retention Removes old entries. @default none are removed
   */
  constructor(
    system: BrokerHandle,
    channel: string,
    retention: Pick<ChannelOptions, 'maxAgeMs' | 'maxBytes'> = KEEP_ALL,
  ) {
    this.#system = system
    this.channel = channel
    this.#options = { compacted: true, ...retention }
  }

  /**
   * Creates the events store if it does not exist, so that its retention is not the one of other channels. A write and
   * a follower do it too.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  create(): Promise<unknown> {
    const creating = this.#system.channels.create('events_store', this.channel, this.#options)
    this.#created = creating
    creating.catch(() => {
      if (this.#created === creating) this.#created = undefined
    })
    return creating
  }

  /**
   * Writes the entry of a key, or deletes the key. Resolves with the position when the entry is durable.
   * @param content undefined deletes the key
   * @param expected The sequence that the last entry of the key must have, tombstones included; 0 if there must be
   * none. @default no condition
   * @throws BrokerError CONFLICT, MESSAGE_TOO_LARGE, ENGINE_UNAVAILABLE
   */
  async write(key: string, content: KeyedContent | undefined, expected?: number): Promise<AppendResult> {
    await (this.#created ?? this.create())
    const entry = content ?? { body: NOTHING, tombstone: true }
    return this.#system.eventsStore.publish(this.channel, { ...entry, key, expectLastOfKey: expected })
  }

  /**
   * Returns the last entry of a key, whichever node wrote it; it may be newer than the followers' last one.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async last(key: string): Promise<KeyedEntry | undefined> {
    const event = await this.#system.eventsStore.getLast(this.channel, key)
    return event !== undefined && hasKey(event) ? event : undefined
  }

  /** Returns the oldest entry that is kept, of any key; undefined if there is none. @throws BrokerError ENGINE_UNAVAILABLE */
  async oldest(): Promise<StoredEvent | undefined> {
    const [event] = await this.#system.eventsStore.read(this.channel, { fromSequence: 1, maxMessages: 1 })
    return event
  }

  /**
   * Returns the last entry of a key. Writes the first entry if there is none; nodes that do so at the same time all get
   * the same entry.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async ensure(key: string, first: () => KeyedContent): Promise<KeyedEntry | undefined> {
    await this.create()
    const stored = await this.last(key)
    if (stored !== undefined) return stored
    try {
      await this.write(key, first(), 0)
    } catch (error) {
      if (!isBrokerError(error, 'CONFLICT')) throw error
    }
    return this.last(key)
  }

  /** Returns the error to report for an entry that cannot be read. */
  unreadable(sequence: number, cause: unknown): Error {
    return new Error(`entry ${sequence} of ${this.channel} was left out: ${messageOf(cause)}`, { cause })
  }

  /** Delivers the last entries of all keys, then each new entry as it is written, until the signal is aborted. */
  follow(sink: KeyedLogSink, options: FollowOptions): KeyedLogFollower {
    return new KeyedLogFollower(this.#system, this, sink, options)
  }
}

/**
 * Follows a log. Reads every key again when the engine ended the subscription: missed entries may have been compacted
 * away.
 */
export class KeyedLogFollower {
  /** Resolves when the log was read for the first time. Rejects with an error that may not be retried. */
  readonly opened: Promise<void>
  /** Resolves when no further entry arrives. Never rejects. */
  readonly closed: Promise<void>
  readonly #system: BrokerHandle
  readonly #log: KeyedLog
  readonly #sink: KeyedLogSink
  readonly #ended = new AbortController()
  readonly #applied = new AppliedSequence()
  readonly #opened = Promise.withResolvers<void>()
  #wasCurrent = false
  #current = false

  /** Use {@link KeyedLog.follow}. */
  constructor(system: BrokerHandle, log: KeyedLog, sink: KeyedLogSink, { signal, mayRetry }: FollowOptions) {
    this.#system = system
    this.#log = log
    this.#sink = sink
    this.opened = this.#opened.promise
    const end = () => this.#ended.abort()
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
    const failed = (error: unknown): void => {
      if (this.#wasCurrent || mayRetry === undefined || mayRetry(error)) {
        sink.failed(error)
        return
      }
      this.#opened.reject(error)
      end()
    }
    this.closed = keepSubscribed(() => this.#begin(), { signal: this.#ended.signal, failed }).then(() => {
      this.#current = false
      this.#applied.close()
      this.#opened.resolve()
      signal.removeEventListener('abort', end)
    })
  }

  /** `true` while entries arrive as they are written; `false` until all were read, and after an interruption. */
  get current(): boolean {
    return this.#current
  }

  /** Resolves when the sink has the entries up to this sequence, or after 5 s. */
  applied(sequence: number): Promise<void> {
    return this.#applied.reached(sequence)
  }

  async #begin(): Promise<Subscription> {
    await this.#log.create()
    this.#sink.restart?.()
    const keys = new Set<string>()
    const next = await this.#readAll((event) => {
      if (event.key !== undefined) {
        if (event.tombstone) keys.delete(event.key)
        else keys.add(event.key)
      }
      this.#apply(event, false)
    })
    this.#sink.retain?.(keys)
    const subscription = await this.#system.eventsStore.subscribe(
      this.#log.channel,
      { from: 'sequence', sequence: next },
      { signal: this.#ended.signal },
      (event) => this.#apply(event, true),
    )
    this.#current = true
    this.#wasCurrent = true
    this.#sink.current?.()
    this.#opened.resolve()
    void subscription.closed.then(() => {
      this.#current = false
    })
    return subscription
  }

  /** Reads the history in pages. Resolves with the sequence after the last entry, from which a subscription continues. */
  async #readAll(each: (event: StoredEvent) => void): Promise<number> {
    let next = 1
    for (;;) {
      const options = { fromSequence: next, maxMessages: PAGE, maxBytes: PAGE_BYTES }
      const page = await this.#system.eventsStore.read(this.#log.channel, options)
      this.#ended.signal.throwIfAborted()
      for (const event of page) {
        next = event.sequence + 1
        each(event)
      }
      if (page.length === 0) return next
    }
  }

  /** Continues after an error with the next entry: otherwise the engine would deliver this one repeatedly. */
  #apply(event: StoredEvent, live: boolean): void {
    try {
      if (!hasKey(event)) throw new TypeError('it has no key')
      this.#sink.entry(event, live)
    } catch (cause) {
      this.#sink.failed(this.#log.unreadable(event.sequence, cause))
    }
    this.#applied.advance(event.sequence)
  }
}

function hasKey(event: StoredEvent): event is KeyedEntry {
  return event.key !== undefined
}

/** The longest wait for an entry that this node wrote: it is durable even if this node has not applied it yet. */
const APPLY_MS = 5_000

interface Waiter {
  readonly sequence: number
  readonly resolve: () => void
}

/** The last sequence that this node has applied. Lets a caller that wrote an entry read its own write. */
class AppliedSequence {
  /** Ordered by sequence. */
  #waiters: Waiter[] = []
  #sequence = 0

  reached(sequence: number): Promise<void> {
    if (sequence <= this.#sequence) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter)
        resolve()
      }, APPLY_MS)
      timer.unref()
      const waiter: Waiter = {
        sequence,
        resolve() {
          clearTimeout(timer)
          resolve()
        },
      }
      const after = this.#waiters.findLastIndex((other) => other.sequence <= sequence)
      this.#waiters.splice(after + 1, 0, waiter)
    })
  }

  advance(sequence: number): void {
    this.#sequence = Math.max(this.#sequence, sequence)
    const waiting = this.#waiters.findIndex((waiter) => waiter.sequence > sequence)
    for (const { resolve } of this.#waiters.splice(0, waiting === -1 ? this.#waiters.length : waiting)) resolve()
  }

  close(): void {
    this.advance(Infinity)
  }
}
