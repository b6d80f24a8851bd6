import type { StoredEventInput } from '@signalbox/broker-core'
import { ANONYMOUS, isBrokerError } from '@signalbox/broker-core'

import type { AgentWrites } from './agent-writes.ts'
import type { Liveness } from './directory/liveness.ts'
import type { LocalDirectory } from './directory/local-directory.ts'
import type { AgentEntry } from './directory/agent-entry.ts'
import { holdEntry, tombstone } from './discovery/discovery-entry.ts'
import type { DiscoveryLog } from './discovery/discovery-log.ts'
import type { RegistryReports } from './registry-reports.ts'
import { codeOf } from './registry-reports.ts'

/** The number of expired agents that are written at the same time. */
const EXPIRE_AT_ONCE = 100

export interface UpkeepContext {
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
      this.#context.writes.replicate(agentId, entry.lastSeenMs).catch((error: unknown) => {
        if (!this.#closed && codeOf(error) !== 'AGENT_NOT_FOUND') this.#context.reports.failed(error)
      })
    }
  }

  async expire(agentIds: readonly string[]): Promise<void> {
    for (let at = 0; at < agentIds.length; at += EXPIRE_AT_ONCE) {
      await Promise.all(agentIds.slice(at, at + EXPIRE_AT_ONCE).map((agentId) => this.#expireOne(agentId)))
    }
  }

  /**
   * Writes only if the entry is still the agent's last. So a heartbeat on another node wins, and only one
   * node expires the agent.
   */
  async #expireOne(agentId: string): Promise<void> {
    const entry = this.#context.directory.get(agentId)
    if (entry === undefined || this.#closed) return
    try {
      await this.#context.log.append(this.#expiryOf(agentId, entry), entry.sequence)
      this.#context.reports.operation('expire', 'success', { agentId })
    } catch (error) {
      if (this.#closed) return
      // The agent is gone, or another node has heard of it.
      if (this.#context.directory.has(agentId)) this.#context.liveness.spared(agentId)
      if (isBrokerError(error, 'CONFLICT')) return
      this.#context.reports.operation('expire', 'error', { agentId, code: codeOf(error) })
      this.#context.reports.failed(error)
      this.#context.liveness.outage()
    }
  }

  /** The id is held for its owner. Anonymous callers are one owner, so nothing is held for them. */
  #expiryOf(agentId: string, { stored }: AgentEntry): StoredEventInput {
    const { holdMs } = this.#context
    const { registered_by: owner } = stored
    if (holdMs === 0 || owner === ANONYMOUS.clientId) return tombstone(agentId)
    return holdEntry(agentId, { owner, untilMs: Date.now() + holdMs })
  }

  /** Every node tries, because the node that wrote the entry may be gone; one succeeds. */
  async takeBack(agentId: string, sequence: number): Promise<void> {
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
