import { randomUUID } from 'node:crypto'

import type { BrokerHandle } from '@signalbox/broker-core'

import { mayAct, requireFree, requireOwner } from './agent-ownership.ts'
import { AgentWrites, notFound } from './agent-writes.ts'
import type { AgentCard, StoredCard } from './card/agent-card.ts'
import { isAgentId } from './card/agent-card.ts'
import { validateCard } from './card/validate-card.ts'
import { AgentEntry } from './directory/agent-entry.ts'
import type { AgentShares } from './directory/agent-shares.ts'
import { accountOf, agentShares } from './directory/agent-shares.ts'
import type { HeldIds } from './directory/held-ids.ts'
import { Liveness } from './directory/liveness.ts'
import type { LocalDirectory } from './directory/local-directory.ts'
import type { CardMemory } from './directory/card-memory.ts'
import type { MaxAgents } from './directory/max-agents.ts'
import { isHeld, recordEntry, tombstone } from './discovery/discovery-entry.ts'
import { DiscoveryLog } from './discovery/discovery-log.ts'
import { RegistryError } from './errors.ts'
import type { AgentFilter, RegistryCaller, RegistryChange, RegistryOperation, RegistryOptions } from './options.ts'
import { RegistryReports } from './registry-reports.ts'
import { RegistryState } from './registry-state.ts'
import { Upkeep } from './upkeep.ts'
import { AgentAddressPolicy } from './url-safety/agent-address-policy.ts'

/**
 * Opens the registry: reads the history of `_AGENTS_.discovery`, then follows the channel. Resolves when the
 * history has been read.
 * @throws RangeError for an option that is out of range
 * @throws BrokerError ENGINE_UNAVAILABLE, unless `waitForEngine` is true
 */
export async function openRegistry(system: BrokerHandle, options: RegistryOptions = {}): Promise<AgentRegistry> {
  return AgentRegistry.open(system, options)
}

/**
 * The registered agents of the cluster. The entries of the discovery log determine the state, so it is the
 * same on every node. Each write is conditional: it fails if another node wrote for the same agent in the
 * meantime.
 */
export class AgentRegistry implements AsyncDisposable {
  readonly #log: DiscoveryLog
  readonly #directory: LocalDirectory
  readonly #limit: MaxAgents
  readonly #cards: CardMemory
  readonly #shares: AgentShares
  readonly #held: HeldIds
  readonly #liveness: Liveness
  readonly #policy: AgentAddressPolicy
  readonly #reports: RegistryReports
  readonly #writes: AgentWrites
  readonly #upkeep: Upkeep
  #closed: Promise<void> | undefined

  static async open(system: BrokerHandle, options: RegistryOptions): Promise<AgentRegistry> {
    const registry = new AgentRegistry(system, options)
    try {
      await registry.#log.open(options.waitForEngine ?? false)
      return registry
    } catch (error) {
      // Otherwise the entries that were read so far would expire agents later.
      await registry.close()
      throw error
    }
  }

  private constructor(system: BrokerHandle, options: RegistryOptions) {
    const { agentTtlSeconds = 300, maxAgents = 0, maxAgentsOf = agentShares(maxAgents) } = options
    const { idHoldSeconds = 86_400, addressPolicy = new AgentAddressPolicy(), hooks = {} } = options
    if (!(idHoldSeconds >= 0)) {
      throw new RangeError(`idHoldSeconds is ${idHoldSeconds}; it must be a number of at least 0`)
    }
    const holdMs = idHoldSeconds * 1000
    this.#policy = addressPolicy
    this.#reports = new RegistryReports(hooks)
    this.#liveness = new Liveness(agentTtlSeconds, {
      expire: (agentIds) => {
        this.#upkeep.expire(agentIds).catch((error: unknown) => this.#reports.failed(error))
      },
      replicate: (agentIds) => this.#upkeep.replicateAhead(agentIds),
    })
    const state = new RegistryState({
      maxAgents,
      maxAgentsOf,
      maxCardMemoryBytes: options.maxCardMemoryBytes,
      holdMs,
      liveness: this.#liveness,
      reports: this.#reports,
      takeBack: (agentId, sequence) => {
        this.#upkeep.takeBack(agentId, sequence).catch((error: unknown) => this.#reports.failed(error))
      },
    })
    this.#directory = state.directory
    this.#limit = state.limit
    this.#shares = state.shares
    this.#held = state.held
    this.#cards = state.cards
    this.#log = new DiscoveryLog(system, state)
    this.#writes = new AgentWrites(this.#log, state.directory, this.#liveness)
    this.#upkeep = new Upkeep({
      holdMs,
      log: this.#log,
      directory: state.directory,
      liveness: this.#liveness,
      writes: this.#writes,
      reports: this.#reports,
    })
  }

  /** The number of agents that this node knows. */
  get size(): number {
    return this.#directory.size
  }

  /**
   * `true` while this node receives changes as they are written; `false` while its subscription to the
   * discovery log is being restored.
   */
  get current(): boolean {
    return this.#log.current
  }

  /**
   * Returns the card of an agent from this node's memory. Returns undefined for an unknown agent, and for an
   * id that is not valid.
   */
  get(agentId: string): AgentCard | undefined {
    return this.#directory.get(agentId)?.card
  }

  /**
   * Returns the card of an agent. Asks the engine when this node does not know the agent, because its entry
   * may not have arrived yet.
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async find(agentId: string): Promise<AgentCard | undefined> {
    const card = this.get(agentId)
    if (card !== undefined || !isAgentId(agentId)) return card
    const { record, sequence } = await this.#log.last(agentId)
    return record && new AgentEntry(record, sequence).card
  }

  /** Lists agents, ordered by `agent_id`. */
  list(filter: AgentFilter = {}): readonly AgentCard[] {
    return this.#directory.list(filter).map(({ card }) => card)
  }

  /**
   * Registers an agent, or updates its card. Resolves with the card when it is durable and visible on this
   * node. Keeps unknown fields, and ignores the fields that the server sets.
   * @throws RegistryError CARD_INVALID with all problems, AGENT_OWNED, AGENT_LIMIT, CALLER_AGENT_LIMIT,
   * SHUTTING_DOWN
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  register(card: unknown, caller: RegistryCaller): Promise<AgentCard> {
    return this.#counted('register', idIn(card), caller, async () => {
      const submitted = await validateCard(card, (url) => this.#policy.check(url))
      const { agent_id: agentId } = submitted
      const place = this.#limit.placeFor(agentId)
      const share = this.#shares.placeFor(agentId, caller)
      const memory = this.#cards.placeFor(agentId, submitted)
      try {
        const { written, sequence } = await this.#writes.write(agentId, (record, hold) => {
          if (record === undefined) {
            requireFree(agentId, hold, caller)
            share.take()
            place.take()
          } else requireOwner(record.card, caller)
          const now = Math.max(Date.now(), record?.lastSeenMs ?? 0)
          const { registered_by = caller.clientId, registered_at = timestamp(now) } = record?.card ?? {}
          const stored: StoredCard = { ...submitted, registered_by, registered_at }
          const { since, account = accountOf(caller) } = record ?? {}
          memory.take(account)
          const entry = {
            card: stored,
            account,
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
        share.release()
        place.release()
        memory.release()
      }
    })
  }

  /**
   * Removes an agent. Resolves when the removal is durable and visible on this node. For an Admin it also
   * frees the held id of an expired agent.
   * @throws RegistryError AGENT_NOT_FOUND, AGENT_OWNED, SHUTTING_DOWN
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  deregister(agentId: string, caller: RegistryCaller): Promise<void> {
    return this.#counted('deregister', agentId, caller, async () => {
      const { sequence } = await this.#writes.write(agentId, (record, hold) => {
        if (record !== undefined) requireOwner(record.card, caller)
        else if (hold === undefined || !isHeld(hold) || caller.admin !== true) throw notFound(agentId)
        return { entry: tombstone(agentId), written: undefined }
      })
      await this.#log.applied(sequence)
    })
  }

  /**
   * Records that an agent is alive.
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
      await this.#writes.replicate(agentId, Date.now(), caller)
    })
  }

  /**
   * Notifies the listener of every change on any node, in the same order on every node. Listeners must be
   * quick; their errors are reported to the hook `failed`. Returns a function that removes the listener.
   * @param options.replay Also notifies of each agent that is registered now, as `registered`, before this
   * returns. @default false
   */
  onChange(listener: (change: RegistryChange) => void, options: { readonly replay?: boolean } = {}): () => void {
    const remove = this.#reports.add(listener)
    if (options.replay === true) {
      for (const card of this.list())
        this.#reports.notify(listener, { kind: 'registered', agentId: card.agent_id, card })
    }
    return remove
  }

  /** Stops following the discovery log. Idempotent. */
  close(): Promise<void> {
    this.#liveness.close()
    this.#held.close()
    this.#upkeep.close()
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
    const { clientId, address } = caller
    const detail = {
      clientId,
      ...(agentId !== undefined && isAgentId(agentId) ? { agentId } : {}),
      ...(address === undefined ? {} : { address }),
    }
    return this.#reports.counted(op, detail, async () => {
      if (this.#closed !== undefined) throw new RegistryError('SHUTTING_DOWN', 'the registry is closed; try again')
      return call()
    })
  }
}

function idIn(card: unknown): string | undefined {
  if (typeof card !== 'object' || card === null || !('agent_id' in card)) return undefined
  return typeof card.agent_id === 'string' ? card.agent_id : undefined
}

function timestamp(ms: number): string {
  return new Date(ms).toISOString()
}
