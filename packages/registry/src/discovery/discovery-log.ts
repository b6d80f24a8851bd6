import { setTimeout as delay } from 'node:timers/promises'

import type { BrokerHandle, StoredEvent, StoredEventInput, Subscription } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import { createCompactedLog, readWholeLog } from '@signalbox/broker-core/internal'

import { AppliedSequence } from './applied-sequence.ts'
import { readEntry } from './discovery-entry.ts'
import type { AgentRecord, DiscoveryEntry, IdHold } from './discovery-entry.ts'

/**
 * The compacted events store that replicates registrations between nodes.
 */
export const DISCOVERY_CHANNEL = '_AGENTS_.discovery'

/** The pause before a subscription that ended or failed is made again. */
const RETRY_MS = 1_000

/** The owner of the state that the entries determine. */
export interface DiscoverySink {
  /** Returns the agent's record as known so far. */
  known(agentId: string): AgentRecord | undefined
  /**
   * Applies an entry. Called in the order of the log.
   * @param live `true` for an entry that was written while this node followed; `false` for history.
   */
  apply(entry: DiscoveryEntry, live: boolean): void
  /** Called when the whole history was read: agents and holds that are not listed are gone. */
  retain(agentIds: ReadonlySet<string>): void
  /** Reports a failure that affects no caller. */
  failed(error: unknown): void
}

/**
 * The result of {@link DiscoveryLog.last}: the last entry of an agent's key, including tombstones and
 * unreadable entries.
 */
export interface LastEntry {
  /** The sequence that the next entry must expect; 0 when there is no entry. */
  readonly sequence: number
  readonly record?: AgentRecord
  readonly hold?: IdHold
}

/** The discovery log. Writes entries, and follows the log from its first entry. */
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

  /**
   * `true` while entries arrive as they are written; `false` while a subscription that ended is being made
   * again.
   */
  get current(): boolean {
    return this.#current
  }

  /**
   * Resolves when the history has been read. Later entries arrive after that.
   * @param wait Retries while the engine is unavailable, and reports each failure to the sink.
   */
  async open(wait: boolean): Promise<void> {
    for (;;) {
      try {
        await createCompactedLog(this.#system, DISCOVERY_CHANNEL)
        this.#following = this.#follow(await this.#begin()).catch((error: unknown) => this.#sink.failed(error))
        return
      } catch (error) {
        // A cluster that elects new leaders after a crash of a server does not answer for seconds.
        if (!wait || !isBrokerError(error, 'ENGINE_UNAVAILABLE')) throw error
        this.#sink.failed(error)
      }
      await delay(RETRY_MS)
    }
  }

  /**
   * Writes an entry, unless another entry for the same agent was written after `expected`. Resolves with its
   * sequence when it is durable.
   * @throws BrokerError CONFLICT, ENGINE_UNAVAILABLE, MESSAGE_TOO_LARGE
   */
  async append(entry: StoredEventInput, expected: number): Promise<number> {
    const { sequence } = await this.#system.eventsStore.publish(DISCOVERY_CHANNEL, {
      ...entry,
      expectLastOfKey: expected,
    })
    return sequence
  }

  /** Resolves when this node has applied all entries up to the sequence, or after 5 s. */
  applied(sequence: number): Promise<void> {
    return this.#applied.reached(sequence)
  }

  /** Reads the agent's last entry from the engine, which may be newer than this node's state. */
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

  /** Reads the history, then subscribes to later entries. */
  async #begin(): Promise<Subscription> {
    const present = new Set<string>()
    const next = await readWholeLog(this.#system, DISCOVERY_CHANNEL, (event) => {
      const entry = this.#apply(event, false)
      if (entry?.record === undefined && entry?.hold === undefined) present.delete(event.key ?? '')
      else present.add(entry.agentId)
    })
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

  /**
   * Reads the whole log again when the engine ended the subscription: missed entries may have been compacted
   * away.
   */
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
    // An unreadable last entry counts as no agent: a node that starts later would see no agent either.
    const entry = read ?? (key === undefined ? undefined : { agentId: key, sequence })
    try {
      if (entry !== undefined) this.#sink.apply(entry, live)
    } catch (error) {
      // Continues with the next entry: otherwise the engine would deliver this one repeatedly.
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
