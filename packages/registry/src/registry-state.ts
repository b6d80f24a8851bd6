import { isBrokerError } from '@signalbox/broker-core'

import { AgentShares, CardMemory, MaxAgents } from './directory/agent-limits.ts'
import type { Liveness } from './directory/liveness.ts'
import { HeldIds } from './directory/liveness.ts'
import { AgentEntry, LocalDirectory } from './directory/local-directory.ts'
import { ParkedAgents } from './directory/parked-agents.ts'
import type { AgentRecord, DiscoveryEntry } from './discovery/discovery-entry.ts'
import { storedForm } from './discovery/discovery-entry.ts'
import type { DiscoverySink } from './discovery/discovery-log.ts'
import { RegistryError } from './errors.ts'
import type { OperationDetail, RegistryCaller, RegistryChange, RegistryHooks, RegistryOperation } from './options.ts'
import type { CardProbes } from './probes/card-probes.ts'

interface StateContext {
  /** MaxAgents; 0 means no limit. */
  readonly maxAgents: number
  /** Returns the maximum number of agents of a caller; 0 means no limit. */
  readonly maxAgentsOf: (caller: RegistryCaller) => number
  /** The maximum memory of all cards, in bytes. */
  readonly maxCardMemoryBytes: number | undefined
  /** The time for which ids of expired agents are held, in milliseconds. */
  readonly holdMs: number
  /** The time for which agents with an inbox are parked, in milliseconds. */
  readonly parkMs: number
  readonly liveness: Liveness
  readonly reports: RegistryReports
  readonly probes: Pick<CardProbes, 'applied' | 'removed'>
  /** Called to remove an entry: its registration exceeds MaxAgents, or the hold of its id is over. */
  readonly withdraw: (agentId: string, sequence: number) => void
  /** Called to remove agents that were parked for {@link parkMs}. */
  readonly endParking: (agentIds: readonly string[]) => void
}

/**
 * The state that the entries of the discovery log determine on this node. Only entries change it; listeners
 * are notified of each change.
 */
export class RegistryState implements DiscoverySink {
  readonly directory = new LocalDirectory()
  readonly limit: MaxAgents
  readonly shares: AgentShares
  readonly held: HeldIds
  readonly cards: CardMemory
  readonly parked: ParkedAgents
  readonly #context: StateContext

  constructor(context: StateContext) {
    this.limit = new MaxAgents(context.maxAgents, this.directory)
    const { maxAgentsOf, reports } = context
    this.shares = new AgentShares({ maxAgentsOf, limited: (account) => reports.limited(account) })
    this.cards = new CardMemory(context.maxCardMemoryBytes)
    this.parked = new ParkedAgents((agentIds) => context.endParking(agentIds))
    this.held = new HeldIds(context.holdMs, (agentId, sequence) => context.withdraw(agentId, sequence))
    this.#context = context
  }

  known(agentId: string): AgentRecord | undefined {
    return this.directory.get(agentId)?.record
  }

  apply({ agentId, sequence, record, hold }: DiscoveryEntry, live: boolean): void {
    if (record === undefined) {
      this.#remove(agentId)
      if (hold === undefined) this.held.delete(agentId)
      else this.held.set(agentId, hold, sequence)
      return
    }
    this.held.delete(agentId)
    const { liveness, reports, withdraw } = this.#context
    const before = this.directory.get(agentId)
    const entry = new AgentEntry(record, sequence, before)
    this.directory.set(agentId, entry)
    if (before !== undefined) this.shares.delete(before.record.account, agentId)
    this.shares.add(record.account, agentId)
    // Heartbeats keep the revision, and so the card.
    if (before?.record.revision !== record.revision) {
      this.cards.set(agentId, record.account, storedForm(record.card, record.instances))
    }
    this.#setClocks(entry, before, live)
    liveness.replicated(agentId)
    this.#context.probes.applied(record, before?.record)
    if (before === undefined) {
      reports.changed({ kind: 'registered', agentId, card: entry.card })
      if (live && this.limit.exceededBy(agentId, sequence)) withdraw(agentId, sequence)
    } else if (before.record.revision !== record.revision || before.parked !== entry.parked) {
      reports.changed({ kind: 'updated', agentId, card: entry.card })
    }
  }

  retain(agentIds: ReadonlySet<string>): void {
    for (const agentId of this.directory.ids()) {
      if (!agentIds.has(agentId)) this.#remove(agentId)
    }
    for (const agentId of this.held.ids()) {
      if (!agentIds.has(agentId)) this.held.delete(agentId)
    }
  }

  failed(error: unknown): void {
    this.#context.reports.failed(error)
  }

  /**
   * Restarts the clocks for which the entry has a newer time. Stops the clocks of removed instances. A parked agent has
   * no clock; it is removed when its parking time is over.
   */
  #setClocks(entry: AgentEntry, before: AgentEntry | undefined, live: boolean): void {
    const { liveness, parkMs } = this.#context
    const { card, parkedMs } = entry.record
    for (const clock of before?.clocks ?? []) if (entry.heardMs(clock) === undefined) liveness.stop(clock)
    if (parkedMs !== undefined) {
      for (const clock of entry.clocks) liveness.stop(clock)
      this.parked.set(card.agent_id, parkedMs + parkMs)
      return
    }
    this.parked.delete(card.agent_id)
    for (const clock of entry.clocks) {
      if (before?.parked === true) liveness.restart(clock)
      // After the history was read, the expiry of every agent restarts, including agents that this node knew
      // before (R5).
      if (!live || (entry.heardMs(clock) ?? 0) > (before?.heardMs(clock) ?? -1)) liveness.restart(clock)
    }
  }

  #remove(agentId: string): void {
    const { liveness, reports } = this.#context
    this.limit.forget(agentId)
    this.parked.delete(agentId)
    for (const clock of this.directory.get(agentId)?.clocks ?? []) liveness.stop(clock)
    liveness.forget(agentId)
    this.#context.probes.removed(agentId)
    const { account } = this.directory.get(agentId)?.record ?? {}
    if (account !== undefined) this.shares.delete(account, agentId)
    this.cards.delete(agentId)
    if (this.directory.delete(agentId)) reports.changed({ kind: 'removed', agentId })
  }
}

/** Notifies hooks and listeners. Their errors do not affect the registry. */
export class RegistryReports {
  readonly #hooks: RegistryHooks
  readonly #listeners = new Set<(change: RegistryChange) => void>()

  constructor(hooks: RegistryHooks) {
    this.#hooks = hooks
  }

  /** Returns a function that removes the listener. */
  add(listener: (change: RegistryChange) => void): () => void {
    // A separate function, so that the same listener can be added twice and removed once.
    const own = (change: RegistryChange): void => listener(change)
    this.#listeners.add(own)
    return () => {
      this.#listeners.delete(own)
    }
  }

  changed(change: RegistryChange): void {
    for (const listener of this.#listeners) this.notify(listener, change)
  }

  notify(listener: (change: RegistryChange) => void, change: RegistryChange): void {
    try {
      listener(change)
    } catch (error) {
      this.failed(error)
    }
  }

  /** Runs a call and reports its outcome. */
  async counted<T>(op: RegistryOperation, detail: OperationDetail, call: () => Promise<T>): Promise<T> {
    let result: T
    try {
      result = await call()
    } catch (error) {
      this.operation(op, 'error', { ...detail, code: codeOf(error) })
      throw error
    }
    this.operation(op, 'success', detail)
    return result
  }

  operation(op: RegistryOperation, status: 'success' | 'error', detail: OperationDetail): void {
    try {
      this.#hooks.operation?.(op, status, detail)
    } catch {}
  }

  limited(account: string): void {
    try {
      this.#hooks.limited?.({ limit: 'caller_agents', account })
    } catch {}
  }

  failed(error: unknown): void {
    try {
      this.#hooks.failed?.(error)
    } catch {}
  }
}

export function codeOf(error: unknown): string {
  return error instanceof RegistryError || isBrokerError(error) ? error.code : 'INTERNAL'
}
