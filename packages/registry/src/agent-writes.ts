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

/** Writes to the discovery log that are decided on by what stands there. */
export class AgentWrites {
  readonly #log: DiscoveryLog
  readonly #directory: LocalDirectory
  readonly #liveness: Liveness

  constructor(log: DiscoveryLog, directory: LocalDirectory, liveness: Liveness) {
    this.#log = log
    this.#directory = directory
    this.#liveness = liveness
  }

  /** Writes what `decide` makes of the agent's record, or of the hold of its id, and decides anew when somebody else was faster. */
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
        // A refusal may rest on what this node has not heard of yet: it asks before it says no.
        if (isBrokerError(error) ? error.code !== 'CONFLICT' : fromEngine) throw error
        last = await this.#log.last(agentId)
        fromEngine = true
      }
    }
  }

  /** Tells the log that an agent was heard of; with a caller, only if it may say so. */
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
  const text = `no agent ${shownText(agentId, 128)} is registered; GET /agents lists those that are`
  return new RegistryError('AGENT_NOT_FOUND', text)
}
