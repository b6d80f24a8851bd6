import type { StoredEventInput } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'

import { requireOwner } from './agent-ownership.ts'
import { isAgentId } from './card/agent-card.ts'
import type { Liveness } from './directory/liveness.ts'
import type { LocalDirectory } from './directory/local-directory.ts'
import { recordEntry } from './discovery/discovery-entry.ts'
import type { AgentRecord, IdHold } from './discovery/discovery-entry.ts'
import type { DiscoveryLog, LastEntry } from './discovery/discovery-log.ts'
import { RegistryError } from './errors.ts'
import type { RegistryCaller } from './options.ts'

/** Conditional writes to the discovery log, each decided on the agent's last entry. */
export class AgentWrites {
  readonly #log: DiscoveryLog
  readonly #directory: LocalDirectory
  readonly #liveness: Liveness

  constructor(log: DiscoveryLog, directory: LocalDirectory, liveness: Liveness) {
    this.#log = log
    this.#directory = directory
    this.#liveness = liveness
  }

  /**
   * Calls `decide` with the agent's record, or with the hold of its id, and writes the entry that it
   * returns. Decides again when another write for the agent came first.
   */
  async write<Written>(
    agentId: string,
    decide: (
      record: AgentRecord | undefined,
      hold: IdHold | undefined,
    ) => { entry: StoredEventInput; written: Written },
  ): Promise<{ written: Written; sequence: number }> {
    if (!isAgentId(agentId)) throw notFound(agentId)
    const known = this.#directory.get(agentId)
    let last: LastEntry = known ?? (await this.#log.last(agentId))
    let fromEngine = known === undefined
    for (;;) {
      try {
        const { entry, written } = decide(last.record, last.hold)
        return { written, sequence: await this.#log.append(entry, last.sequence) }
      } catch (error) {
        // This node may not know the newest entry yet: before it refuses, it asks the engine.
        if (isBrokerError(error) ? error.code !== 'CONFLICT' : fromEngine) throw error
        last = await this.#log.last(agentId)
        fromEngine = true
      }
    }
  }

  /** Writes to the log that the agent is alive. With a caller, only if the caller may act on the agent. */
  async replicate(agentId: string, seenMs: number, caller?: RegistryCaller): Promise<void> {
    try {
      await this.write(agentId, (record) => {
        if (record === undefined) throw notFound(agentId)
        if (caller !== undefined) requireOwner(record.card, caller)
        const lastSeenMs = Math.max(seenMs, record.lastSeenMs)
        return { entry: recordEntry({ ...record, lastSeenMs }), written: undefined }
      })
    } catch (error) {
      if (!(error instanceof RegistryError)) this.#liveness.replicationFailed(agentId)
      throw error
    }
  }
}

export function notFound(agentId: string): RegistryError {
  const text = `no agent ${shownText(agentId, 128)} is registered; GET /agents lists the registered agents`
  return new RegistryError('AGENT_NOT_FOUND', text)
}
