import { randomUUID } from 'node:crypto'

import type { BrokerHandle, StoredEventInput } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'

import type { AgentCard, StoredCard } from './card/agent-card.ts'
import { isAgentId } from './card/agent-card.ts'
import { validateCard } from './card/validate-card.ts'
import { AgentEntry } from './directory/agent-entry.ts'
import { Liveness } from './directory/liveness.ts'
import type { LocalDirectory } from './directory/local-directory.ts'
import type { MaxAgents } from './directory/max-agents.ts'
import { recordEntry, tombstone } from './discovery/discovery-entry.ts'
import type { AgentRecord } from './discovery/discovery-entry.ts'
import { DiscoveryLog } from './discovery/discovery-log.ts'
import type { LastEntry } from './discovery/discovery-log.ts'
import { RegistryError } from './errors.ts'
import type { AgentFilter, RegistryCaller, RegistryChange, RegistryOperation, RegistryOptions } from './options.ts'
import { codeOf, RegistryReports } from './registry-reports.ts'
import { RegistryState } from './registry-state.ts'
import { AgentAddressPolicy } from './url-safety/agent-address-policy.ts'

/** Tombstones of expired agents that are written at a time. */
const EXPIRE_AT_ONCE = 100

/**
 * Opens the registry: follows `_AGENTS_.discovery`, and resolves when its history has been read.
 * @throws RangeError for an option that is out of range; BrokerError ENGINE_UNAVAILABLE
 */
export async function openRegistry(system: BrokerHandle, options: RegistryOptions = {}): Promise<AgentRegistry> {
  return AgentRegistry.open(system, options)
}

/**
 * The registered agents, on this node and on all others: state is what the entries of the discovery log add up to, on every
 * node alike. A write is an entry that holds only if nobody else wrote for the same agent since it was decided on.
 */
export class AgentRegistry implements AsyncDisposable {
  readonly #log: DiscoveryLog
  readonly #directory: LocalDirectory
  readonly #limit: MaxAgents
  readonly #liveness: Liveness
  readonly #policy: AgentAddressPolicy
  readonly #reports: RegistryReports
  #closed: Promise<void> | undefined

  static async open(system: BrokerHandle, options: RegistryOptions): Promise<AgentRegistry> {
    const registry = new AgentRegistry(system, options)
    await registry.#log.open()
    return registry
  }

  private constructor(system: BrokerHandle, options: RegistryOptions) {
    const { agentTtlSeconds = 300, maxAgents = 0, addressPolicy = new AgentAddressPolicy(), hooks = {} } = options
    this.#policy = addressPolicy
    this.#reports = new RegistryReports(hooks)
    this.#liveness = new Liveness(agentTtlSeconds, {
      expire: (agentIds) => void this.#expire(agentIds),
      replicate: (agentIds) => this.#replicateAhead(agentIds),
    })
    const state = new RegistryState({
      maxAgents,
      liveness: this.#liveness,
      reports: this.#reports,
      takeBack: (agentId, sequence) => void this.#takeBack(agentId, sequence),
    })
    this.#directory = state.directory
    this.#limit = state.limit
    this.#log = new DiscoveryLog(system, state)
  }

  /** How many agents are registered, as far as this node knows. */
  get size(): number {
    return this.#directory.size
  }

  /** What this node knows of an agent, at once. An id of the wrong form is one that is not registered. */
  get(agentId: string): AgentCard | undefined {
    return this.#directory.get(agentId)?.card
  }

  /**
   * As {@link get}, but before it says no it asks the engine, which may know of what has not come here yet (R9).
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async find(agentId: string): Promise<AgentCard | undefined> {
    const card = this.get(agentId)
    if (card !== undefined || !isAgentId(agentId)) return card
    const { record, sequence } = await this.#log.last(agentId)
    return record && new AgentEntry(record, sequence).card
  }

  /** In the order of `agent_id` (R3). */
  list(filter: AgentFilter = {}): readonly AgentCard[] {
    return this.#directory.list(filter).map(({ card }) => card)
  }

  /**
   * Registers an agent, or brings its card up to date; resolves with the card when it is durable and this node shows it.
   * Unknown fields are kept, what the server sets is ignored (R2).
   * @throws RegistryError CARD_INVALID with all problems, AGENT_OWNED, AGENT_LIMIT, SHUTTING_DOWN
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  register(card: unknown, caller: RegistryCaller): Promise<AgentCard> {
    return this.#counted('register', idIn(card), caller, async () => {
      const submitted = await validateCard(card, (url) => this.#policy.check(url))
      const { agent_id: agentId } = submitted
      const place = this.#limit.placeFor(agentId)
      try {
        const { written, sequence } = await this.#write(agentId, (record) => {
          if (record === undefined) place.take()
          else requireOwner(record.card, caller)
          const now = Math.max(Date.now(), record?.lastSeenMs ?? 0)
          const { registered_by = caller.clientId, registered_at = timestamp(now) } = record?.card ?? {}
          const stored: StoredCard = { ...submitted, registered_by, registered_at }
          const { since } = record ?? {}
          const entry = {
            card: stored,
            revision: randomUUID(),
            lastSeenMs: now,
            ...(since === undefined ? {} : { since }),
          }
          return { entry: recordEntry(entry), written: entry }
        })
        await this.#log.applied(sequence)
        if (this.#limit.isExcess(agentId, sequence)) throw this.#limit.refusal()
        return new AgentEntry({ since: sequence, ...written }, sequence).card
      } finally {
        place.release()
      }
    })
  }

  /**
   * Takes an agent out; resolves when that is durable and this node shows it.
   * @throws RegistryError AGENT_NOT_FOUND, AGENT_OWNED, SHUTTING_DOWN
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  deregister(agentId: string, caller: RegistryCaller): Promise<void> {
    return this.#counted('deregister', agentId, caller, async () => {
      const { sequence } = await this.#write(agentId, (record) => {
        if (record === undefined) throw notFound(agentId)
        requireOwner(record.card, caller)
        return { entry: tombstone(agentId), written: undefined }
      })
      await this.#log.applied(sequence)
    })
  }

  /**
   * Says that an agent is alive.
   * @throws RegistryError AGENT_NOT_FOUND, AGENT_OWNED, SHUTTING_DOWN
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  heartbeat(agentId: string, caller: RegistryCaller): Promise<void> {
    return this.#counted('heartbeat', agentId, caller, async () => {
      const known = this.#directory.get(agentId)
      if (known !== undefined && mayAct(known.stored, caller)) {
        known.seen(Date.now())
        if (!this.#liveness.heard(agentId)) return
      }
      await this.#replicate(agentId, Date.now(), caller)
    })
  }

  /**
   * Tells of every change, in the same order on every node, those of this node included. Listeners must be quick; what they
   * throw is dropped. The returned function removes the listener.
   * @param options.replay first tells of every agent there is, as `registered`, before this returns. @default false
   */
  onChange(listener: (change: RegistryChange) => void, options: { readonly replay?: boolean } = {}): () => void {
    const remove = this.#reports.add(listener)
    if (options.replay === true) {
      for (const card of this.list()) this.#reports.tell(listener, { kind: 'registered', agentId: card.agent_id, card })
    }
    return remove
  }

  /** Stops following. Idempotent. */
  close(): Promise<void> {
    this.#liveness.close()
    this.#closed ??= this.#log.close()
    return this.#closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #counted<T>(
    op: RegistryOperation,
    agentId: string | undefined,
    caller: RegistryCaller,
    call: () => Promise<T>,
  ): Promise<T> {
    const detail = { clientId: caller.clientId, ...(agentId !== undefined && isAgentId(agentId) ? { agentId } : {}) }
    return this.#reports.counted(op, detail, async () => {
      if (this.#closed !== undefined) throw new RegistryError('SHUTTING_DOWN', 'the registry is closed; try again')
      return call()
    })
  }

  /** Writes what `decide` makes of the agent's record, and decides anew when somebody else was faster. */
  async #write<Written>(
    agentId: string,
    decide: (record: AgentRecord | undefined) => { entry: StoredEventInput; written: Written },
  ): Promise<{ written: Written; sequence: number }> {
    if (!isAgentId(agentId)) throw notFound(agentId)
    const known = this.#directory.get(agentId)
    let last: LastEntry = known ?? (await this.#log.last(agentId))
    let fromEngine = known === undefined
    for (;;) {
      try {
        const { entry, written } = decide(last.record)
        return { written, sequence: await this.#log.append(entry, last.sequence) }
      } catch (error) {
        // A refusal may rest on what this node has not heard of yet: it asks before it says no.
        if (isBrokerError(error) ? error.code !== 'CONFLICT' : fromEngine) throw error
        last = await this.#log.last(agentId)
        fromEngine = true
      }
    }
  }

  async #replicate(agentId: string, seenMs: number, caller?: RegistryCaller): Promise<void> {
    try {
      await this.#write(agentId, (record) => {
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

  /** Heartbeats that came too soon after one another to be written each are made good for here. */
  #replicateAhead(agentIds: readonly string[]): void {
    for (const agentId of agentIds) {
      const entry = this.#directory.get(agentId)
      if (entry === undefined || !entry.ahead) continue
      this.#liveness.heard(agentId)
      this.#replicate(agentId, entry.lastSeenMs).catch((error: unknown) => {
        if (this.#closed === undefined && codeOf(error) !== 'AGENT_NOT_FOUND') this.#reports.failed(error)
      })
    }
  }

  async #expire(agentIds: readonly string[]): Promise<void> {
    for (let at = 0; at < agentIds.length; at += EXPIRE_AT_ONCE) {
      await Promise.all(agentIds.slice(at, at + EXPIRE_AT_ONCE).map((agentId) => this.#expireOne(agentId)))
    }
  }

  /** Holds only if the entry is still the agent's last: a heartbeat on another node wins, and one node of all expires it. */
  async #expireOne(agentId: string): Promise<void> {
    const entry = this.#directory.get(agentId)
    if (entry === undefined || this.#closed !== undefined) return
    try {
      await this.#log.append(tombstone(agentId), entry.sequence)
      this.#reports.operation('expire', 'success', { agentId })
    } catch (error) {
      if (isBrokerError(error, 'CONFLICT') || this.#closed !== undefined) return
      this.#reports.operation('expire', 'error', { agentId, code: codeOf(error) })
      this.#reports.failed(error)
      this.#liveness.outage(agentId)
    }
  }

  /** Every node tries, and one succeeds: the node that wrote it may be gone. */
  async #takeBack(agentId: string, sequence: number): Promise<void> {
    try {
      await this.#log.append(tombstone(agentId), sequence)
    } catch (error) {
      if (!isBrokerError(error, 'CONFLICT')) this.#reports.failed(error)
    }
  }
}

/** R4: only the owner, or an Admin. */
function mayAct({ registered_by: owner }: StoredCard, { clientId, admin = false }: RegistryCaller): boolean {
  return admin || owner === clientId
}

/** @throws RegistryError AGENT_OWNED */
function requireOwner(card: StoredCard, caller: RegistryCaller): void {
  if (mayAct(card, caller)) return
  const text = `the agent ${JSON.stringify(card.agent_id)} belongs to another principal; choose another agent_id`
  throw new RegistryError('AGENT_OWNED', text)
}

function notFound(agentId: string): RegistryError {
  const text = `no agent ${JSON.stringify(agentId.slice(0, 128))} is registered; GET /agents lists those that are`
  return new RegistryError('AGENT_NOT_FOUND', text)
}

function idIn(card: unknown): string | undefined {
  if (typeof card !== 'object' || card === null || !('agent_id' in card)) return undefined
  return typeof card.agent_id === 'string' ? card.agent_id : undefined
}

function timestamp(ms: number): string {
  return new Date(ms).toISOString()
}
