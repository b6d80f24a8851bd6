import { ANONYMOUS, isBrokerError } from '@signalbox/broker-core'

import { withoutInstances } from './agent-instances.ts'
import type { AgentWrites } from './agent-writes.ts'
import type { StoredCard } from './card/agent-card.ts'
import type { Liveness } from './directory/liveness.ts'
import type { LocalDirectory } from './directory/local-directory.ts'
import { clockOf, ownerOf } from './directory/local-directory.ts'
import { holdEntry, recordEntry, tombstone } from './discovery/discovery-entry.ts'
import type { NewEntry } from './discovery/discovery-entry.ts'
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

  /** Removes the agents and instances whose clocks have run out. */
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
   * Removes silent instances, and the agent with its last one. A heartbeat on another node wins. Decides again when
   * another write came first, because the other instances of the agent write too.
   */
  async #expireInstances(agentId: string, silent: readonly string[]): Promise<void> {
    const entry = this.#context.directory.get(agentId)
    if (entry === undefined || this.#closed) return
    try {
      const { written } = await this.#context.writes.write(agentId, (record) => {
        const gone = record?.instances.filter(
          ({ instance_id: id, seenMs }) =>
            silent.includes(id) && seenMs <= (entry.heardMs(clockOf(record, id)) ?? seenMs),
        )
        if (record === undefined || gone === undefined || gone.length === 0) throw new NothingExpired()
        const ids = gone.map(({ instance_id }) => instance_id)
        const left = withoutInstances(record, new Set(ids))
        return { entry: left === undefined ? this.#expiryOf(agentId, record.card) : recordEntry(left), written: ids }
      })
      for (const instanceId of written) {
        this.#context.reports.operation('expire', 'success', { agentId, instanceId })
      }
    } catch (error) {
      if (this.#closed) return
      const now = this.#context.directory.get(agentId)
      for (const instanceId of silent) {
        const clock = clockOf(entry.record, instanceId)
        if (now?.heardMs(clock) !== undefined) this.#context.liveness.restart(clock)
      }
      if (!(error instanceof NothingExpired)) this.#failed(agentId, error)
    }
  }

  #failed(agentId: string, error: unknown): void {
    this.#context.reports.operation('expire', 'error', { agentId, code: codeOf(error) })
    this.#context.reports.failed(error)
    this.#context.liveness.outage()
  }

  /**
   * Writes only if the entry is still the agent's last. So a heartbeat on another node wins, and only one
   * node expires the agent.
   */
  async #expireOne(agentId: string): Promise<void> {
    const entry = this.#context.directory.get(agentId)
    if (entry === undefined || this.#closed) return
    try {
      await this.#context.log.append(this.#expiryOf(agentId, entry.stored), entry.sequence)
      this.#context.reports.operation('expire', 'success', { agentId })
    } catch (error) {
      if (this.#closed) return
      // The agent was removed, or another node received a heartbeat.
      if (this.#context.directory.has(agentId)) this.#context.liveness.restart(agentId)
      if (!isBrokerError(error, 'CONFLICT')) this.#failed(agentId, error)
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
