import { isBrokerError } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'

import type { RegistrationName } from './agent-instances.ts'
import { namedInstance, withTimes } from './agent-instances.ts'
import type { StoredCard } from './card/agent-card.ts'
import { isAgentId } from './card/agent-card.ts'
import type { Liveness } from './directory/liveness.ts'
import type { LocalDirectory } from './directory/local-directory.ts'
import { clockOf } from './directory/local-directory.ts'
import type { AgentRecord, IdHold, NewEntry } from './discovery/discovery-entry.ts'
import { isHeld, recordEntry } from './discovery/discovery-entry.ts'
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
   * Writes the times of the last heartbeats of the agent and its instances to the log. A heartbeat ends the parking.
   * @param beat A heartbeat to be written too, if its caller may act on the agent
   * @returns the sequence of the entry
   */
  async replicate(agentId: string, beat?: Heartbeat): Promise<number> {
    try {
      const { sequence } = await this.write(agentId, (record) => {
        if (record === undefined) throw notFound(agentId)
        if (beat !== undefined) requireOwner(record.card, beat.caller)
        const known = this.#directory.get(agentId)
        const beating = beat && clockOf(record, namedInstance(record, beat.name)?.instance_id)
        const later = withTimes(record, (instanceId) => {
          const clock = clockOf(record, instanceId)
          return Math.max(known?.heardMs(clock) ?? 0, beat !== undefined && clock === beating ? beat.atMs : 0)
        })
        // The node that parked the agent did not know of a later heartbeat on this one.
        const alive = beat !== undefined || later.lastSeenMs > record.lastSeenMs
        return { entry: recordEntry(alive ? { ...later, parkedMs: undefined } : later), written: undefined }
      })
      return sequence
    } catch (error) {
      if (!(error instanceof RegistryError)) this.#liveness.replicationFailed(agentId)
      throw error
    }
  }
}

/** A heartbeat that this node received. */
interface Heartbeat {
  readonly caller: RegistryCaller
  readonly name: RegistrationName
  /** In milliseconds since the epoch. */
  readonly atMs: number
}

export function notFound(agentId: string): RegistryError {
  const text = `no agent ${shownText(agentId, 128)} is registered; GET /agents lists the registered agents`
  return new RegistryError('AGENT_NOT_FOUND', text)
}

/** Returns true when the caller may change or remove the agent: its owner may, and an Admin. */
export function mayAct(
  { registered_by: owner }: Pick<StoredCard, 'registered_by'>,
  { clientId, admin = false }: RegistryCaller,
): boolean {
  return admin || owner === clientId
}

/**
 * Throws when the id of an expired agent is held for another principal.
 * @throws RegistryError AGENT_OWNED
 */
export function requireFree(
  agentId: string,
  hold: IdHold | undefined,
  { clientId, admin = false }: RegistryCaller,
): void {
  if (hold === undefined || !isHeld(hold) || admin || hold.owner === clientId) return
  const text =
    `the agent_id ${JSON.stringify(agentId)} is held until ${new Date(hold.untilMs).toISOString()} for the principal whose agent expired; ` +
    'choose another agent_id, or ask an Admin to delete this one'
  throw new RegistryError('AGENT_OWNED', text)
}

/**
 * Throws when the agent belongs to another principal, and the caller is no Admin.
 * @throws RegistryError AGENT_OWNED
 */
export function requireOwner(card: Pick<StoredCard, 'agent_id' | 'registered_by'>, caller: RegistryCaller): void {
  if (mayAct(card, caller)) return
  const text = `the agent ${JSON.stringify(card.agent_id)} belongs to another principal; choose another agent_id`
  throw new RegistryError('AGENT_OWNED', text)
}
