import { isBrokerError } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'

import { requireOwner } from './agent-ownership.ts'
import { isAgentId } from './card/agent-card.ts'
import { clockOf } from './directory/agent-entry.ts'
import type { Liveness } from './directory/liveness.ts'
import type { LocalDirectory } from './directory/local-directory.ts'
import { recordEntry } from './discovery/discovery-entry.ts'
import type { AgentRecord, IdHold, NewEntry } from './discovery/discovery-entry.ts'
import type { DiscoveryLog, LastEntry } from './discovery/discovery-log.ts'
import { RegistryError } from './errors.ts'
import { withTimes } from './instances/instance-changes.ts'
import type { RegistrationName } from './instances/registration-name.ts'
import { namedInstance } from './instances/registration-name.ts'
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
    decide: (record: AgentRecord | undefined, hold: IdHold | undefined) => { entry: NewEntry; written: Written },
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

  /**
   * Writes to the log when this node last heard of the agent and of its instances.
   * @param beat A heartbeat to be written too, if its caller may act on the agent
   */
  async replicate(agentId: string, beat?: Heartbeat): Promise<void> {
    try {
      await this.write(agentId, (record) => {
        if (record === undefined) throw notFound(agentId)
        if (beat !== undefined) requireOwner(record.card, beat.caller)
        const known = this.#directory.get(agentId)
        const beating = beat && clockOf(record, namedInstance(record, beat.name)?.instance_id)
        const later = withTimes(record, (instanceId) => {
          const clock = clockOf(record, instanceId)
          return Math.max(known?.heardMs(clock) ?? 0, beat !== undefined && clock === beating ? beat.atMs : 0)
        })
        return { entry: recordEntry(later), written: undefined }
      })
    } catch (error) {
      if (!(error instanceof RegistryError)) this.#liveness.replicationFailed(agentId)
      throw error
    }
  }
}

/** A heartbeat that this node received. */
export interface Heartbeat {
  readonly caller: RegistryCaller
  readonly name: RegistrationName
  /** In milliseconds since the epoch. */
  readonly atMs: number
}

export function notFound(agentId: string): RegistryError {
  const text = `no agent ${shownText(agentId, 128)} is registered; GET /agents lists the registered agents`
  return new RegistryError('AGENT_NOT_FOUND', text)
}
