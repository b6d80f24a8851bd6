import { MultiMap } from '@signalbox/broker-core/internal'
import { ANONYMOUS_ACCOUNT, derivedLimits, fairTurns, half, scanJson } from '@signalbox/http-kit/internal'

import type { StoredCard } from '../card/agent-card.ts'
import { RegistryError } from '../errors.ts'
import type { RegistryCaller } from '../options.ts'

/** The registered agents that the limit counts. */
interface Registered {
  readonly size: number
  has(agentId: string): boolean
}

/** A reservation for a new agent, held until its entry was applied or has failed. */
interface Reservation {
  /** Makes the reservation, unless it is made already. @throws RegistryError AGENT_LIMIT, CALLER_AGENT_LIMIT */
  take(): void
  release(): void
}

function reservation(take: () => void, release: () => void): Reservation {
  let taken = false
  return {
    take() {
      if (!taken) take()
      taken = true
    },
    release() {
      if (taken) release()
      taken = false
    },
  }
}

/** New agents whose entries are being written, with the number of calls for each. */
class NewAgents {
  readonly #calls = new Map<string, number>()

  get ids(): Iterable<string> {
    return this.#calls.keys()
  }

  get isEmpty(): boolean {
    return this.#calls.size === 0
  }

  has(agentId: string): boolean {
    return this.#calls.has(agentId)
  }

  add(agentId: string): void {
    this.#calls.set(agentId, (this.#calls.get(agentId) ?? 0) + 1)
  }

  delete(agentId: string): void {
    const calls = (this.#calls.get(agentId) ?? 1) - 1
    if (calls > 0) this.#calls.set(agentId, calls)
    else this.#calls.delete(agentId)
  }
}

/** The limit MaxAgents. It is exact on one node; in a cluster, registrations that exceed it are withdrawn. */
export class MaxAgents {
  readonly #limit: number
  readonly #registered: Registered
  readonly #new = new NewAgents()
  /** Registrations over the limit, by agent, with the sequence of their entry. They are being withdrawn. */
  readonly #excess = new Map<string, number>()

  /** @throws RangeError unless `limit` is a whole number; 0 means no limit */
  constructor(limit: number, registered: Registered) {
    if (!Number.isSafeInteger(limit) || limit < 0) {
      throw new RangeError(`maxAgents is ${limit}; it must be a whole number of at least 0`)
    }
    this.#limit = limit
    this.#registered = registered
  }

  reserve(agentId: string): Reservation {
    return reservation(
      () => {
        if (this.#limit > 0 && this.#countExcept(agentId) >= this.#limit) throw this.refusal()
        this.#new.add(agentId)
      },
      () => {
        this.#new.delete(agentId)
        if (!this.#new.has(agentId) && !this.#registered.has(agentId)) this.#excess.delete(agentId)
      },
    )
  }

  #countExcept(agentId: string): number {
    let count = this.#registered.size
    for (const other of this.#new.ids) {
      if (other !== agentId && !this.#registered.has(other)) count++
    }
    return count
  }

  /**
   * Returns true when a new agent exceeds the limit, so that its registration must be withdrawn. Called for
   * each new agent in the order of the log, which is the same on every node.
   */
  exceededBy(agentId: string, sequence: number): boolean {
    if (this.#limit === 0 || this.#registered.size <= this.#limit) return false
    this.#excess.set(agentId, sequence)
    return true
  }

  /**
   * Returns true when the registration that a call wrote exceeds the limit. Called after this node has
   * passed its entry in the log. If the agent is missing then, its entry was withdrawn, and compacted away,
   * before this node read it.
   */
  isExcess(agentId: string, sequence: number): boolean {
    if (this.#limit === 0) return false
    return this.#excess.get(agentId) === sequence || !this.#registered.has(agentId)
  }

  /**
   * Forgets a removed agent. Another node may withdraw a registration before the call on this node has seen
   * its own entry, so the result for that call is kept until the call ends.
   */
  forget(agentId: string): void {
    if (!this.#new.has(agentId)) this.#excess.delete(agentId)
  }

  refusal(): RegistryError {
    const text = `the limit of ${this.#limit} registered agents is reached; deregister one, or raise CONNECTORSA2_A_MAX_AGENTS`
    return new RegistryError('AGENT_LIMIT', text, [{ limit: this.#limit }])
  }
}

/** The default maximum number of agents of one verified caller. */
const DEFAULT_PER_CALLER = 1_000
/** The maximum number of agents of one network address while callers are anonymous and MaxAgents is 0. */
const ANONYMOUS_WITHOUT_MAX = 10_000

/** Returns the account that a caller's agents count against. */
export function accountOf({ account, clientId }: RegistryCaller): string {
  return account ?? `client:${clientId}`
}

/**
 * Creates the default function for {@link RegistryOptions.maxAgentsOf}. A verified caller may own
 * `perCaller` agents. A network address of anonymous callers may own half of MaxAgents if that is more, or
 * 10,000 if MaxAgents is 0.
 * @param perCaller The maximum number of agents of one verified caller; 0 means no limit, for anonymous
 * callers too. @default 1000
 */
export function agentShares(
  maxAgents: number,
  perCaller: number = DEFAULT_PER_CALLER,
): (caller: RegistryCaller) => number {
  const most = maxAgents === 0 ? ANONYMOUS_WITHOUT_MAX : Math.max(perCaller, half(maxAgents))
  const anonymous = perCaller === 0 ? 0 : most
  return (caller) => (accountOf(caller).startsWith(ANONYMOUS_ACCOUNT) ? anonymous : perCaller)
}

interface ShareOptions {
  /** The maximum number of agents of a caller; 0 means no limit. */
  readonly maxAgentsOf: (caller: RegistryCaller) => number
  /** Called when a registration was refused. */
  readonly limited: (account: string) => void
}

/**
 * The number of agents of each owner. Prevents one caller from using all of MaxAgents. The limit is exact on
 * one node.
 */
export class AgentShares {
  readonly #options: ShareOptions
  readonly #owned = new MultiMap<string, string>()
  readonly #new = new Map<string, NewAgents>()

  constructor(options: ShareOptions) {
    this.#options = options
  }

  add(account: string, agentId: string): void {
    this.#owned.add(account, agentId)
  }

  delete(account: string, agentId: string): void {
    this.#owned.delete(account, agentId)
  }

  /** Reserves one of the caller's agents; `take` throws RegistryError CALLER_AGENT_LIMIT. */
  reserve(agentId: string, caller: RegistryCaller): Reservation {
    const account = accountOf(caller)
    return reservation(
      () => {
        const most = this.#options.maxAgentsOf(caller)
        if (most > 0 && this.#countExcept(account, agentId) >= most) {
          this.#options.limited(account)
          throw shareRefusal(account, most)
        }
        const added = this.#new.get(account) ?? new NewAgents()
        this.#new.set(account, added)
        added.add(agentId)
      },
      () => {
        const added = this.#new.get(account)
        added?.delete(agentId)
        if (added?.isEmpty === true) this.#new.delete(account)
      },
    )
  }

  #countExcept(account: string, agentId: string): number {
    const owned = this.#owned.get(account)
    let count = owned.size
    for (const other of this.#new.get(account)?.ids ?? []) {
      if (other !== agentId && !owned.has(other)) count++
    }
    return count
  }
}

function shareRefusal(account: string, most: number): RegistryError {
  const text = account.startsWith(ANONYMOUS_ACCOUNT)
    ? `your network address owns ${most} agents, the maximum without authentication; deregister some, or authenticate`
    : `this caller owns ${most} agents, the maximum (LIMITS_CALLER_AGENTS); deregister some, or raise the limit`
  return new RegistryError('CALLER_AGENT_LIMIT', text, [{ limit: 'caller_agents', most }])
}

/** The cost of memory that a card keeps, as a multiple of memory that is read: the collector copies and marks it. */
const KEPT_COST = 4

const NO_MEMBERS = { member(): void {} }
const NO_LIMITS = { maxDepth: Number.MAX_SAFE_INTEGER, maxKeys: 0, maxParts: 0 }

/**
 * Estimates the memory of a card, in bytes: up to twenty times its text, for example if that consists of
 * empty arrays.
 */
function bytesOf(card: object): number {
  const text = JSON.stringify(card)
  return text.length + scanJson(text, NO_LIMITS, NO_MEMBERS).valueBytes
}

/** A reservation of memory for a card, held until its entry was applied or has failed. */
interface CardReservation {
  /** Replaces what it has taken before. @throws RegistryError AGENT_LIMIT, CALLER_AGENT_LIMIT */
  take(account: string, card: object): void
  release(): void
}

interface Held {
  readonly account: string
  readonly bytes: number
}

/**
 * The memory that the cards of all agents use on this node, and its limits: by default an eighth of the
 * memory that the process may use, and half of that for one owner. Checked when an agent registers on this node; cards from other
 * nodes are always kept.
 */
export class CardMemory {
  readonly #most: number
  readonly #held = new Map<string, Held>()
  readonly #byAccount = new Map<string, number>()
  #bytes = 0

  /** @param most The limit, in bytes. @default an eighth of the memory that the process may use */
  constructor(most = derivedLimits().cardBytes) {
    this.#most = most
  }

  set(agentId: string, account: string, card: StoredCard): void {
    this.delete(agentId)
    const bytes = bytesOf(card)
    this.#held.set(agentId, { account, bytes })
    this.#add(account, bytes)
  }

  delete(agentId: string): void {
    const held = this.#held.get(agentId)
    if (held === undefined) return
    this.#held.delete(agentId)
    this.#add(held.account, -held.bytes)
  }

  reserve(agentId: string): CardReservation {
    let taken: Held | undefined
    const release = (): void => {
      if (taken !== undefined) this.#add(taken.account, -taken.bytes)
      taken = undefined
    }
    return {
      take: (account, card) => {
        release()
        const bytes = bytesOf(card)
        // The new card replaces the present one.
        const before = this.#held.get(agentId)?.bytes ?? 0
        const more = bytes - before
        if (more > 0 && this.#bytes + more > this.#most) throw memoryRefusal('AGENT_LIMIT', this.#most)
        const most = half(this.#most)
        if (more > 0 && (this.#byAccount.get(account) ?? 0) + more > most)
          throw memoryRefusal('CALLER_AGENT_LIMIT', most)
        taken = { account, bytes }
        fairTurns.restAfter(account, KEPT_COST * bytes)
        this.#add(account, bytes)
      },
      release,
    }
  }

  #add(account: string, bytes: number): void {
    this.#bytes += bytes
    const sum = (this.#byAccount.get(account) ?? 0) + bytes
    if (sum === 0) this.#byAccount.delete(account)
    else this.#byAccount.set(account, sum)
  }
}

function memoryRefusal(code: 'AGENT_LIMIT' | 'CALLER_AGENT_LIMIT', most: number): RegistryError {
  const whose = code === 'AGENT_LIMIT' ? 'the cards of all agents' : "the cards of this caller's agents"
  const text = `${whose} would take more than ${Math.floor(most / 2 ** 20)} MiB of memory; deregister some, or register smaller cards`
  return new RegistryError(code, text, [{ limit: 'card_bytes', most }])
}
