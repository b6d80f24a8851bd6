import { ANONYMOUS, isBrokerError } from '@signalbox/broker-core'

import { withoutInstances, withTimes } from './agent-instances.ts'
import type { AgentWrites } from './agent-writes.ts'
import type { StoredCard } from './card/agent-card.ts'
import { isParkable } from './card/agent-options.ts'
import type { Liveness } from './directory/liveness.ts'
import type { AgentEntry, LocalDirectory } from './directory/local-directory.ts'
import { clockOf, ownerOf } from './directory/local-directory.ts'
import { holdEntry, recordEntry, tombstone } from './discovery/discovery-entry.ts'
import type { AgentRecord, NewEntry } from './discovery/discovery-entry.ts'
import type { DiscoveryLog } from './discovery/discovery-log.ts'
import type { RegistryReports } from './registry-state.ts'
import { codeOf } from './registry-state.ts'

/** The number of expired agents that are written at the same time. */
const EXPIRE_AT_ONCE = 100

/** Thrown instead of a write: the instances have sent a heartbeat, or are gone. */
class NothingExpired extends Error {
  override readonly name = 'NothingExpired'
}

interface UpkeepContext {
  /** The time for which ids of expired agents are held, in milliseconds. */
  readonly holdMs: number
  /** The time for which agents with an inbox are parked, in milliseconds; 0 parks none. */
  readonly parkMs: number
  readonly log: DiscoveryLog
  readonly directory: LocalDirectory
  readonly liveness: Liveness
  readonly writes: AgentWrites
  readonly reports: RegistryReports
}

/** The background tasks of a node: expiry, replication of heartbeats, removal of entries. No task rejects. */
export class Upkeep {
  readonly #context: UpkeepContext
  #closed = false

  constructor(context: UpkeepContext) {
    this.#context = context
  }

  /** Replicates heartbeats that followed each other too quickly to be written one by one. */
  replicateAhead(agentIds: readonly string[]): void {
    for (const agentId of agentIds) {
      const entry = this.#context.directory.get(agentId)
      if (entry === undefined || !entry.ahead) continue
      this.#context.liveness.replicating(agentId)
      this.#context.writes.replicate(agentId).catch((error: unknown) => {
        if (!this.#closed && codeOf(error) !== 'AGENT_NOT_FOUND') this.#context.reports.failed(error)
      })
    }
  }

  /** Removes or parks the agents, and removes the instances, whose clocks have run out. */
  async expire(clocks: readonly string[]): Promise<void> {
    const byAgent = Map.groupBy(clocks.map(ownerOf), ({ agentId }) => agentId)
    const agents = [...byAgent]
    for (let at = 0; at < agents.length; at += EXPIRE_AT_ONCE) {
      await Promise.all(
        agents.slice(at, at + EXPIRE_AT_ONCE).map(([agentId, owners]) => {
          const instances = owners.flatMap(({ instanceId }) => instanceId ?? [])
          return instances.length === 0 ? this.#expireOne(agentId) : this.#expireInstances(agentId, instances)
        }),
      )
    }
  }

  /**
   * Removes silent instances, and the agent with its last one. An agent that is parked keeps its last instances, whose
   * heartbeats end the parking. A heartbeat on another node wins. Decides again when another write came first, because
   * the other instances of the agent write too.
   */
  async #expireInstances(agentId: string, silent: readonly string[]): Promise<void> {
    const entry = this.#context.directory.get(agentId)
    if (entry === undefined || this.#closed) return
    try {
      const { written } = await this.#context.writes.write(agentId, (record) => {
        if (record === undefined || record.parkedMs !== undefined) throw new NothingExpired()
        const gone = record.instances.filter(
          ({ instance_id: id, seenMs }) =>
            silent.includes(id) && seenMs <= (entry.heardMs(clockOf(record, id)) ?? seenMs),
        )
        if (gone.length === 0) throw new NothingExpired()
        const ids = gone.map(({ instance_id }) => instance_id)
        const left = withoutInstances(record, new Set(ids))
        if (left !== undefined) return { entry: recordEntry(left), written: ids }
        const parked = this.#parkedEntry(entry, record)
        if (parked !== undefined) return { entry: parked, written: undefined }
        return { entry: this.#expiryOf(agentId, record.card), written: ids }
      })
      if (written === undefined) this.#context.reports.operation('park', 'success', { agentId })
      for (const instanceId of written ?? []) {
        this.#context.reports.operation('expire', 'success', { agentId, instanceId })
      }
    } catch (error) {
      if (this.#closed) return
      const now = this.#context.directory.get(agentId)
      for (const instanceId of silent) {
        const clock = clockOf(entry.record, instanceId)
        if (now?.heardMs(clock) !== undefined && !now.parked) this.#context.liveness.restart(clock)
      }
      if (!(error instanceof NothingExpired)) this.#failed('expire', agentId, error)
    }
  }

  #failed(op: 'expire' | 'park', agentId: string, error: unknown): void {
    this.#context.reports.operation(op, 'error', { agentId, code: codeOf(error) })
    this.#context.reports.failed(error)
    this.#context.liveness.outage()
  }

  /**
   * Writes only if the entry is still the agent's last. So a heartbeat on another node wins, and only one
   * node expires or parks the agent.
   */
  async #expireOne(agentId: string): Promise<void> {
    const entry = this.#context.directory.get(agentId)
    if (entry === undefined || entry.parked || this.#closed) return
    const parked = this.#parkedEntry(entry, entry.record)
    const op = parked === undefined ? 'expire' : 'park'
    try {
      await this.#context.log.append(parked ?? this.#expiryOf(agentId, entry.stored), entry.sequence)
      this.#context.reports.operation(op, 'success', { agentId })
    } catch (error) {
      if (this.#closed) return
      // The agent was removed or parked, or another node received a heartbeat.
      if (this.#context.directory.get(agentId)?.parked === false) this.#context.liveness.restart(agentId)
      if (!isBrokerError(error, 'CONFLICT')) this.#failed(op, agentId, error)
    }
  }

  /** Returns the entry that parks an expired agent; undefined for an agent that is removed instead. */
  #parkedEntry(entry: AgentEntry, record: AgentRecord): NewEntry | undefined {
    if (this.#context.parkMs === 0 || !isParkable(record.card)) return undefined
    // Heartbeats that were not replicated: an agent that is ahead of its entry would leave the parking again.
    const seen = withTimes(record, (instanceId) => entry.heardMs(clockOf(record, instanceId)) ?? 0)
    return recordEntry({ ...seen, parkedMs: Date.now() })
  }

  /** Removes agents that were parked long enough. Every node tries, because each may be the only one; one succeeds. */
  async endParking(agentIds: readonly string[]): Promise<void> {
    for (let at = 0; at < agentIds.length; at += EXPIRE_AT_ONCE) {
      await Promise.all(agentIds.slice(at, at + EXPIRE_AT_ONCE).map((agentId) => this.#endParkingOf(agentId)))
    }
  }

  async #endParkingOf(agentId: string): Promise<void> {
    const entry = this.#context.directory.get(agentId)
    if (entry?.parked !== true || this.#closed) return
    try {
      await this.#context.log.append(this.#expiryOf(agentId, entry.stored), entry.sequence)
      this.#context.reports.operation('expire', 'success', { agentId })
    } catch (error) {
      if (!isBrokerError(error, 'CONFLICT') && !this.#closed) this.#failed('expire', agentId, error)
    }
  }

  /** The id is held for its owner. Anonymous callers are one owner, so nothing is held for them. */
  #expiryOf(agentId: string, { registered_by: owner }: StoredCard): NewEntry {
    const { holdMs } = this.#context
    if (holdMs === 0 || owner === ANONYMOUS.clientId) return tombstone(agentId)
    return holdEntry(agentId, { owner, untilMs: Date.now() + holdMs })
  }

  /** Every node tries, because the node that wrote the entry may be gone; one succeeds. */
  async withdraw(agentId: string, sequence: number): Promise<void> {
    try {
      await this.#context.log.append(tombstone(agentId), sequence)
    } catch (error) {
      if (!isBrokerError(error, 'CONFLICT') && !this.#closed) this.#context.reports.failed(error)
    }
  }

  /** Running tasks end without further reports. */
  close(): void {
    this.#closed = true
  }
}
