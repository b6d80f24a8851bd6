import { setTimeout as delay } from 'node:timers/promises'

import type { BrokerHandle, StoredEvent, StoredEventInput, Subscription } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'

import { AppliedSequence } from './applied-sequence.ts'
import { readEntry } from './discovery-entry.ts'
import type { AgentRecord, DiscoveryEntry, IdHold } from './discovery-entry.ts'

/** The compacted events store that replicates registrations between nodes (specification, "Events", internal channels). */
export const DISCOVERY_CHANNEL = '_AGENTS_.discovery'

/** One page of the history. */
const PAGE = 1_000
const PAGE_BYTES = 4 * 1024 * 1024

/** How long until a subscription that the engine ended, or that it could not make, is made again. */
const RETRY_MS = 1_000

/** Who keeps the state that the entries add up to. */
export interface DiscoverySink {
  /** What is known of the agent so far. */
  known(agentId: string): AgentRecord | undefined
  /** The entries come in their order. `live`: it was written while this node followed; false for history. */
  apply(entry: DiscoveryEntry, live: boolean): void
  /** The whole history was read: agents that are not in it are gone, and so are holds of their ids. */
  retain(agentIds: ReadonlySet<string>): void
  /** Something went wrong that no caller is told about. */
  failed(error: unknown): void
}

/** What {@link DiscoveryLog.last} found: the last entry of an agent's key, tombstones and unreadable ones included. */
export interface LastEntry {
  /** What the next entry has to expect; 0 where there is none. */
  readonly sequence: number
  readonly record?: AgentRecord
  readonly hold?: IdHold
}

/** The discovery log: writes to it, and follows it from its first entry on. */
export class DiscoveryLog {
  readonly #system: BrokerHandle
  readonly #sink: DiscoverySink
  readonly #ended = new AbortController()
  readonly #applied = new AppliedSequence()
  #subscription: Subscription | undefined
  #following: Promise<void> | undefined
  #current = false

  constructor(system: BrokerHandle, sink: DiscoverySink) {
    this.#system = system
    this.#sink = sink
  }

  /** Whether entries come here as they are written; false while a subscription that the engine ended is made again. */
  get current(): boolean {
    return this.#current
  }

  /**
   * Resolves when the history has been read; entries go on coming after that.
   * @param wait tries again while the engine is not available, and tells the sink
   */
  async open(wait: boolean): Promise<void> {
    for (;;) {
      try {
        // Retention by age or size, which other channels may have, would lose registrations.
        const options = { compacted: true, maxAgeMs: 0, maxBytes: 0 }
        await this.#system.channels.create('events_store', DISCOVERY_CHANNEL, options)
        this.#following = this.#follow(await this.#begin()).catch((error: unknown) => this.#sink.failed(error))
        return
      } catch (error) {
        // A cluster that chooses new leaders, after a crash of a server, says nothing for seconds.
        if (!wait || !isBrokerError(error, 'ENGINE_UNAVAILABLE')) throw error
        this.#sink.failed(error)
      }
      await delay(RETRY_MS)
    }
  }

  /**
   * Writes an entry unless somebody else wrote for the same agent after `expected`; resolves with its sequence when it is durable.
   * @throws BrokerError CONFLICT, ENGINE_UNAVAILABLE, MESSAGE_TOO_LARGE
   */
  async append(entry: StoredEventInput, expected: number): Promise<number> {
    const { sequence } = await this.#system.eventsStore.publish(DISCOVERY_CHANNEL, {
      ...entry,
      expectLastOfKey: expected,
    })
    return sequence
  }

  /** Resolves when this node has applied everything up to an entry. */
  applied(sequence: number): Promise<void> {
    return this.#applied.reached(sequence)
  }

  /** Asks the engine, which knows of entries that have not come here yet. */
  async last(agentId: string): Promise<LastEntry> {
    const event = await this.#system.eventsStore.getLast(DISCOVERY_CHANNEL, agentId)
    if (event === undefined) return { sequence: 0 }
    return this.#read(event) ?? { sequence: event.sequence }
  }

  async close(): Promise<void> {
    this.#ended.abort()
    this.#applied.close()
    await this.#subscription?.close()
    await this.#following
  }

  /** Reads the history, and subscribes to what comes after it. */
  async #begin(): Promise<Subscription> {
    const present = new Set<string>()
    let next = 1
    for (;;) {
      const page = await this.#system.eventsStore.read(DISCOVERY_CHANNEL, {
        fromSequence: next,
        maxMessages: PAGE,
        maxBytes: PAGE_BYTES,
      })
      for (const event of page) {
        next = event.sequence + 1
        const entry = this.#apply(event, false)
        if (entry?.record === undefined && entry?.hold === undefined) present.delete(event.key ?? '')
        else present.add(entry.agentId)
      }
      if (page.length === 0) break
    }
    this.#sink.retain(present)
    this.#subscription = await this.#system.eventsStore.subscribe(
      DISCOVERY_CHANNEL,
      { from: 'sequence', sequence: next },
      { signal: this.#ended.signal },
      (event) => {
        this.#apply(event, true)
      },
    )
    this.#current = true
    return this.#subscription
  }

  /** A subscription that the engine ends is made again, from the first entry: what was missed may be compacted away. */
  async #follow(first: Subscription): Promise<void> {
    const { signal } = this.#ended
    let subscription: Subscription | undefined = first
    while (!signal.aborted) {
      const error: unknown = await subscription?.closed
      this.#current = false
      if (signal.aborted) return
      if (error !== undefined) this.#sink.failed(error)
      subscription = undefined
      await delay(RETRY_MS, undefined, { signal, ref: false }).catch(() => {})
      if (signal.aborted) return
      try {
        subscription = await this.#begin()
      } catch (cause) {
        if (!signal.aborted) this.#sink.failed(cause)
      }
    }
  }

  #apply(event: StoredEvent, live: boolean): DiscoveryEntry | undefined {
    const { key, sequence } = event
    const read = this.#read(event)
    // Under a key whose last entry cannot be read there is no agent: a node that starts later would see none either.
    const entry = read ?? (key === undefined ? undefined : { agentId: key, sequence })
    try {
      if (entry !== undefined) this.#sink.apply(entry, live)
    } catch (error) {
      // Following goes on with the next entry: an engine would deliver this one again and again.
      this.#sink.failed(error)
    }
    this.#applied.advance(sequence)
    return entry
  }

  #read(event: StoredEvent): DiscoveryEntry | undefined {
    try {
      return readEntry(event, event.key === undefined ? undefined : this.#sink.known(event.key))
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      this.#sink.failed(new Error(`entry ${event.sequence} of ${DISCOVERY_CHANNEL} was left out: ${reason}`, { cause }))
      return undefined
    }
  }
}
