import { randomUUID } from 'node:crypto'

import type { BrokerHandle } from '@signalbox/broker-core'
import type { AgentFilter } from '@signalbox/broker-core/ports'
import { OutboundConnections } from '@signalbox/http-kit/internal'

import { AgentAddressPolicy } from './agent-addresses.ts'
import type { RegistrationName } from './agent-instances.ts'
import { instancesAfter, namedInstance, namesWhole, withoutInstances } from './agent-instances.ts'
import type { InstanceRecord } from './card/agent-instance.ts'
import { isInstanceId } from './card/agent-instance.ts'
import { AgentWrites, mayAct, notFound, requireFree, requireOwner } from './agent-writes.ts'
import type { AgentCard, StoredCard, SubmittedCard } from './card/agent-card.ts'
import { isAgentId } from './card/agent-card.ts'
import type { AddressCheck } from './card/validate-card.ts'
import { invalidCard, validateCard } from './card/validate-card.ts'
import { AgentAuthorization } from './credentials/agent-authorization.ts'
import type { AgentCredentials } from './credentials/agent-credentials.ts'
import { takeCredentials } from './credentials/agent-credentials.ts'
import type { AgentShares, CardMemory, MaxAgents } from './directory/agent-limits.ts'
import { accountOf, agentShares } from './directory/agent-limits.ts'
import type { HeldIds } from './directory/liveness.ts'
import type { ParkedAgents } from './directory/parked-agents.ts'
import { Liveness } from './directory/liveness.ts'
import type { LocalDirectory } from './directory/local-directory.ts'
import { AgentEntry, clockOf } from './directory/local-directory.ts'
import type { AgentRecord, ProbeResult } from './discovery/discovery-entry.ts'
import { isHeld, recordEntry, storedForm, tombstone } from './discovery/discovery-entry.ts'
import { DiscoveryLog } from './discovery/discovery-log.ts'
import { RegistryError } from './errors.ts'
import type { RegistryCaller, RegistryChange, RegistryOperation, RegistryOptions } from './options.ts'
import { CardProbes } from './probes/card-probes.ts'
import { CardFetchError, cardSource, fetchCard, isByCardUrl, registrationOf } from './probes/served-card.ts'
import { RegistryReports, RegistryState } from './registry-state.ts'
import { Upkeep } from './upkeep.ts'

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
  readonly #parked: ParkedAgents
  readonly #liveness: Liveness
  readonly #policy: AgentAddressPolicy
  readonly #maxInstances: number
  readonly #logs: 'auto' | 'off'
  readonly #reports: RegistryReports
  readonly #writes: AgentWrites
  readonly #upkeep: Upkeep
  readonly #connections: OutboundConnections
  readonly #probes: CardProbes
  /** Authorizes requests to agents. */
  readonly authorization: AgentAuthorization
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
    const { idHoldSeconds = 86_400, maxInstances = 32, addressPolicy = new AgentAddressPolicy(), hooks = {} } = options
    const { parkSeconds = 604_800, log = 'auto' } = options
    for (const [name, value] of Object.entries({ idHoldSeconds, parkSeconds })) {
      if (!(value >= 0)) throw new RangeError(`${name} is ${value}; it must be a number of at least 0`)
    }
    if (!Number.isSafeInteger(maxInstances) || maxInstances < 1) {
      throw new RangeError(`maxInstances is ${maxInstances}; it must be a whole number of at least 1`)
    }
    this.#maxInstances = maxInstances
    this.#logs = log
    const holdMs = idHoldSeconds * 1000
    const parkMs = log === 'off' ? 0 : parkSeconds * 1000
    this.#policy = addressPolicy
    this.#reports = new RegistryReports(hooks)
    this.#liveness = new Liveness(agentTtlSeconds, {
      expire: (clocks) => {
        this.#upkeep.expire(clocks).catch((error: unknown) => this.#reports.failed(error))
      },
      replicate: (agentIds) => this.#upkeep.replicateAhead(agentIds),
    })
    const checkAddress =
      (account: string): AddressCheck =>
      (url) =>
        addressPolicy.check(url, account)
    const state: RegistryState = new RegistryState({
      probes: {
        applied: (record, before) => this.#probes.applied(record, before),
        removed: (agentId) => this.#probes.removed(agentId),
      },
      maxAgents,
      maxAgentsOf,
      maxCardMemoryBytes: options.maxCardMemoryBytes,
      holdMs,
      parkMs,
      liveness: this.#liveness,
      reports: this.#reports,
      withdraw: (agentId, sequence) => {
        this.#upkeep.withdraw(agentId, sequence).catch((error: unknown) => this.#reports.failed(error))
      },
      endParking: (agentIds) => {
        this.#upkeep.endParking(agentIds).catch((error: unknown) => this.#reports.failed(error))
      },
    })
    this.#directory = state.directory
    this.#limit = state.limit
    this.#shares = state.shares
    this.#held = state.held
    this.#parked = state.parked
    this.#cards = state.cards
    this.#connections = options.connections ?? new OutboundConnections({ tlsSkipVerify: false, addressPolicy })
    this.authorization = new AgentAuthorization({
      key: options.credentialsKey,
      operators: options.operatorCredentials ?? (() => undefined),
      connections: this.#connections,
      recordOf: (agentId) => state.directory.get(agentId)?.record,
    })
    this.onChange(({ kind, agentId }) => {
      if (kind === 'removed') this.authorization.forget(agentId)
    })
    this.#log = new DiscoveryLog(system, state)
    this.#writes = new AgentWrites(this.#log, state.directory, this.#liveness)
    this.#probes = new CardProbes({
      ttlMs: agentTtlSeconds * 1000,
      connections: this.#connections,
      writes: this.#writes,
      cards: state.cards,
      recordOf: (agentId) => state.directory.get(agentId)?.record,
      checkAddress,
      failed: (error) => this.#reports.failed(error),
    })
    this.#upkeep = new Upkeep({
      holdMs,
      parkMs,
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

  /** Returns the last probe of an agent's card; undefined for an agent that is not probed. */
  probeOf(agentId: string): ProbeResult | undefined {
    return this.#directory.get(agentId)?.record.probe
  }

  /**
   * Reads the card of a registration by `agent_card_url` alone. Returns every other card unchanged.
   * @throws RegistryError CARD_INVALID
   */
  async readCard(card: unknown, caller: RegistryCaller): Promise<unknown> {
    if (!isByCardUrl(card)) return card
    const account = accountOf(caller)
    const source = await cardSource(card, (url) => this.#policy.check(url, account))
    try {
      const served = await fetchCard(source.url, { connections: this.#connections, account })
      if (served === 'unchanged') throw new CardFetchError('the agent answered with HTTP 304')
      const registration = registrationOf(served.card, source)
      if (source.agentId === undefined) this.#requireUnused(String(registration['agent_id']), source.url)
      return registration
    } catch (error) {
      if (!(error instanceof CardFetchError)) throw error
      const allowed = 'the URL of an agent card that can be read'
      throw invalidCard([{ field: 'agent_card_url', given: `not usable (${error.message})`, allowed }])
    }
  }

  /** Two agents may have the same name: an id that was made from it must not replace another agent. */
  #requireUnused(agentId: string, { href }: URL): void {
    const known = this.get(agentId)
    if (known === undefined || known['agent_card_url'] === href) return
    const allowed = 'the id that the agent gets, because the one made from the name in the card is in use'
    throw invalidCard([{ field: 'agent_id', allowed }])
  }

  /**
   * Registers an agent or an instance of it, or updates its card. Resolves with the card when it is durable and visible on this
   * node. Keeps unknown fields, and ignores the fields that the server sets.
   * @throws RegistryError CARD_INVALID with all problems, AGENT_OWNED, AGENT_LIMIT, INSTANCE_LIMIT, CALLER_AGENT_LIMIT,
   * SHUTTING_DOWN
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  async register(given: unknown, caller: RegistryCaller): Promise<AgentCard> {
    const card = await this.readCard(given, caller)
    const named = { agentId: textIn(card, 'agent_id'), instanceId: textIn(card, 'instance_id') }
    return this.#counted('register', named, caller, async () => {
      const { card: plain, credentials } = takeCredentials(card)
      const check: AddressCheck = (url) => this.#policy.check(url, accountOf(caller))
      const submitted = await validateCard(plain, check, this.#logs)
      await checkTokenUrl(credentials, check)
      const { agent_id: agentId } = submitted
      const reservation = this.#limit.reserve(agentId)
      const share = this.#shares.reserve(agentId, caller)
      const memory = this.#cards.reserve(agentId)
      try {
        const { written, sequence } = await this.#writes.write(agentId, (record, hold) => {
          if (record === undefined) {
            requireFree(agentId, hold, caller)
            share.take()
            reservation.take()
          } else requireOwner(record.card, caller)
          const now = Math.max(Date.now(), record?.lastSeenMs ?? 0)
          const { registered_by = caller.clientId, registered_at = timestamp(now) } = record?.card ?? {}
          const stored: StoredCard = { ...submitted, registered_by, registered_at }
          const { since, account = accountOf(caller) } = record ?? {}
          const instances = instancesAfter(submitted, livingInstances(submitted, record), now, this.#maxInstances)
          const sealed = this.authorization.sealed(stored, credentials, record)
          memory.take(account, storedForm(stored, instances))
          const entry = {
            card: stored,
            instances,
            sealed,
            probe: this.#probes.begin(stored, now),
            account,
            revision: randomUUID(),
            lastSeenMs: now,
            since,
          }
          return { entry: recordEntry(entry), written: entry }
        })
        await this.#log.applied(sequence)
        if (this.#limit.isExcess(agentId, sequence)) throw this.#limit.refusal()
        return new AgentEntry({ ...written, since: written.since ?? sequence }, sequence).card
      } finally {
        share.release()
        reservation.release()
        memory.release()
      }
    })
  }

  /**
   * Removes an agent, or one instance of it; the agent goes with its last instance. Resolves when the removal is
   * durable and visible on this node. For an Admin it also frees the held id of an expired agent.
   * @param name The registration to remove. @default the agent with all its instances
   * @throws RegistryError AGENT_NOT_FOUND, INSTANCE_NOT_FOUND, AGENT_OWNED, SHUTTING_DOWN
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  deregister(agentId: string, caller: RegistryCaller, name: RegistrationName = {}): Promise<void> {
    return this.#counted('deregister', { agentId, ...name }, caller, async () => {
      const { sequence } = await this.#writes.write(agentId, (record, hold) => {
        if (record === undefined) {
          const frees = hold !== undefined && isHeld(hold) && caller.admin === true && namesWhole(name)
          if (!frees) throw notFound(agentId)
          return { entry: tombstone(agentId), written: undefined }
        }
        requireOwner(record.card, caller)
        const leaving = namesWhole(name) ? undefined : namedInstance(record, name)
        const left = leaving && withoutInstances(record, new Set([leaving.instance_id]))
        return { entry: left === undefined ? tombstone(agentId) : recordEntry(left), written: undefined }
      })
      await this.#log.applied(sequence)
    })
  }

  /**
   * Records that an agent, or one instance of it, is alive. Ends its parking.
   * @param name The registration that is alive. @default the last one, whose url the card shows
   * @throws RegistryError AGENT_NOT_FOUND, INSTANCE_NOT_FOUND, AGENT_OWNED, SHUTTING_DOWN
   * @throws BrokerError ENGINE_UNAVAILABLE
   */
  heartbeat(agentId: string, caller: RegistryCaller, name: RegistrationName = {}): Promise<void> {
    return this.#counted('heartbeat', { agentId, ...name }, caller, async () => {
      const atMs = Date.now()
      const known = this.#directory.get(agentId)
      if (known?.parked === false && mayAct(known.stored, caller)) {
        const clock = clockOfName(known, name)
        if (clock !== undefined) {
          known.seen(atMs, clock)
          if (!this.#liveness.heard(agentId, clock)) return
        }
      }
      const sequence = await this.#writes.replicate(agentId, { caller, name, atMs })
      if (known?.parked === true) await this.#log.applied(sequence)
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
    this.#parked.close()
    this.#upkeep.close()
    this.#probes.close()
    void this.#connections.close()
    this.#closed ??= this.#log.close()
    return this.#closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #counted<T>(
    op: RegistryOperation,
    { agentId, instanceId }: { readonly agentId: string | undefined; readonly instanceId?: string | undefined },
    caller: RegistryCaller,
    call: () => Promise<T>,
  ): Promise<T> {
    const { clientId, address } = caller
    const detail = {
      clientId,
      agentId: agentId !== undefined && isAgentId(agentId) ? agentId : undefined,
      instanceId: isInstanceId(instanceId) ? instanceId : undefined,
      address,
    }
    return this.#reports.counted(op, detail, async () => {
      if (this.#closed !== undefined) throw new RegistryError('SHUTTING_DOWN', 'the registry is closed; try again')
      return call()
    })
  }
}

/** Returns the instances that a registration keeps. The instances of a parked agent have expired. */
function livingInstances(
  { instance_id }: SubmittedCard,
  record: Pick<AgentRecord, 'instances' | 'parkedMs'> | undefined,
): readonly InstanceRecord[] {
  if (record === undefined) return []
  return record.parkedMs === undefined
    ? record.instances
    : record.instances.filter((one) => one.instance_id === instance_id)
}

/** Refuses a token endpoint that the broker may not call. @throws RegistryError CARD_INVALID */
async function checkTokenUrl(credentials: AgentCredentials | undefined, check: AddressCheck): Promise<void> {
  if (credentials === undefined || !('oauth' in credentials)) return
  const allowed = await check(new URL(credentials.oauth.token_url))
  if (allowed === undefined) return
  throw invalidCard([{ field: 'a2a.credentials.oauth.token_url', given: 'refused', allowed }])
}

function textIn(card: unknown, member: 'agent_id' | 'instance_id'): string | undefined {
  const value: unknown = typeof card === 'object' && card !== null ? Reflect.get(card, member) : undefined
  return typeof value === 'string' ? value : undefined
}

/** Returns the clock of a registration; undefined if this node does not know the registration, or not yet. */
function clockOfName({ record }: AgentEntry, name: RegistrationName): string | undefined {
  try {
    return clockOf(record, namedInstance(record, name)?.instance_id)
  } catch (error) {
    if (error instanceof RegistryError) return undefined
    throw error
  }
}

function timestamp(ms: number): string {
  return new Date(ms).toISOString()
}
