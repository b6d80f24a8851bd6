import type { BrokerHandle } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import type { KeyedEntry, KeyedLogFollower } from '@signalbox/broker-core/internal'
import { KeyedLog } from '@signalbox/broker-core/internal'

import { readEntry } from './discovery-entry.ts'
import type { AgentRecord, DiscoveryEntry, IdHold, NewEntry } from './discovery-entry.ts'

/**
 * The compacted events store that replicates registrations between nodes.
 */
export const DISCOVERY_CHANNEL = '_AGENTS_.discovery'

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
  readonly #log: KeyedLog
  readonly #sink: DiscoverySink
  readonly #ended = new AbortController()
  #follower: KeyedLogFollower | undefined

  constructor(system: BrokerHandle, sink: DiscoverySink) {
    this.#log = new KeyedLog(system, DISCOVERY_CHANNEL)
    this.#sink = sink
  }

  /**
   * `true` while entries arrive as they are written; `false` while a subscription that ended is being made
   * again.
   */
  get current(): boolean {
    return this.#follower?.current === true
  }

  /**
   * Resolves when the history has been read. Later entries arrive after that.
   * @param wait Retries while the engine is unavailable, and reports each failure to the sink.
   */
  open(wait: boolean): Promise<void> {
    const sink = {
      entry: (event: KeyedEntry, live: boolean) => this.#apply(event, live),
      retain: (agentIds: ReadonlySet<string>) => this.#sink.retain(agentIds),
      failed: (error: unknown) => this.#sink.failed(error),
    }
    // A cluster that elects new leaders after a crash of a server does not answer for seconds.
    const mayRetry = (error: unknown) => wait && isBrokerError(error, 'ENGINE_UNAVAILABLE')
    this.#follower = this.#log.follow(sink, { signal: this.#ended.signal, mayRetry })
    return this.#follower.opened
  }

  /**
   * Writes an entry, unless another entry for the same agent was written after `expected`. Resolves with its
   * sequence when it is durable.
   * @throws BrokerError CONFLICT, ENGINE_UNAVAILABLE, MESSAGE_TOO_LARGE
   */
  async append({ key, tombstone, ...content }: NewEntry, expected: number): Promise<number> {
    const { sequence } = await this.#log.write(key, tombstone ? undefined : content, expected)
    return sequence
  }

  /** Resolves when this node has applied all entries up to the sequence, or after 5 s. */
  async applied(sequence: number): Promise<void> {
    await this.#follower?.applied(sequence)
  }

  /** Reads the agent's last entry from the engine, which may be newer than this node's state. */
  async last(agentId: string): Promise<LastEntry> {
    const event = await this.#log.last(agentId)
    if (event === undefined) return { sequence: 0 }
    try {
      return this.#read(event)
    } catch (error) {
      this.#sink.failed(this.#log.unreadable(event.sequence, error))
      return { sequence: event.sequence }
    }
  }

  async close(): Promise<void> {
    this.#ended.abort()
    await this.#follower?.closed
  }

  #apply(event: KeyedEntry, live: boolean): void {
    const { key: agentId, sequence } = event
    let entry: DiscoveryEntry
    try {
      entry = this.#read(event)
    } catch (error) {
      // An unreadable last entry counts as no agent: a node that starts later would see no agent either.
      this.#sink.apply({ agentId, sequence }, live)
      throw error
    }
    this.#sink.apply(entry, live)
  }

  #read(event: KeyedEntry): DiscoveryEntry {
    return readEntry(event, this.#sink.known(event.key))
  }
}
