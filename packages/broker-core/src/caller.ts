import type { PolicyAction } from './authorization/policy.ts'
import type { ChannelType } from './channel.ts'
import type { Engine } from './engine/engine.ts'
import { BrokerError } from './errors.ts'

/** The identity of a call's sender, verified by the connector. Every action of the Broker has a caller. */
export interface Caller {
  /** The verified id: 1 to 256 visible ASCII characters. */
  readonly clientId: string
  /** The network address of the call, for audit records; undefined for a call inside the process. */
  readonly address?: string | undefined
  /**
   * The account whose limits apply: the ClientID of a verified caller, or the network address of an anonymous one.
   * @default clientId
   */
  readonly account?: string | undefined
  /**
   * The actions that the caller's credentials allow, such as those of an access token's scopes. They restrict the
   * caller in addition to the policy.
   * @default all
   */
  readonly actions?: ReadonlySet<PolicyAction> | undefined
}

/** The caller of every request while authentication is off. */
export const ANONYMOUS: Caller = Object.freeze({ clientId: 'anonymous' })

/** The limits of one account; 0 means unlimited. */
export interface LimitsOfCaller {
  /** The maximum number of existing channels that the account was the first to use. */
  readonly channels: number
  /** The maximum number of commands and queries that wait for an answer. */
  readonly waitingRequests: number
}

/** The names of the limits, as label values. */
export type CallerLimitName = 'caller_channels' | 'caller_waiting_requests'

interface CallerLimitsOptions {
  readonly limitsOf: (caller: Caller) => LimitsOfCaller
  readonly onLimit: (name: CallerLimitName, caller: Caller) => void
}

/** The time for which a channel counts before it exists, for example a dead-letter queue, in ms. */
const EXPECTED_MS = 10 * 60_000

/** The shortest interval between two searches for deleted channels of one account, in ms. */
const RECOUNT_MS = 1_000

interface Counted {
  readonly type: ChannelType
  readonly name: string
  /** The time since which it counts. */
  readonly since: number
}

interface Account {
  readonly channels: Map<string, Counted>
  recountedAt: number
}

/**
 * Counts the channels and waiting requests of each account, in memory: counts start at 0 with the broker, and each node
 * has its own. A channel counts for the account that was the first to use it.
 */
export class CallerUsage {
  readonly #engine: Engine
  readonly #options: CallerLimitsOptions
  readonly #accounts = new Map<string, Account>()
  /** The account that each counted channel counts for. */
  readonly #owners = new Map<string, string>()
  readonly #waiting = new Map<string, number>()

  constructor(engine: Engine, options: CallerLimitsOptions) {
    this.#engine = engine
    this.#options = options
  }

  /**
   * Counts a channel that the caller is about to create. Returns a function that reverts the count, or undefined if the
   * channel exists or counts already.
   * @throws BrokerError CALLER_LIMIT
   */
  reserve(caller: Caller, type: ChannelType, name: string): (() => void) | undefined {
    if (this.#engine.channels.exists(type, name)) return undefined
    const max = this.#options.limitsOf(caller).channels
    const key = `${type} ${name}`
    if (max === 0 || this.#counts(key)) return undefined
    const id = accountOf(caller)
    const account = this.#accounts.get(id) ?? { channels: new Map(), recountedAt: 0 }
    if (account.channels.size >= max) this.#recount(account)
    if (account.channels.size >= max) {
      const text = `the caller has ${max} channels, the maximum for one caller; delete channels, or use existing ones`
      throw this.#refusal('caller_channels', caller, max, text)
    }
    this.#accounts.set(id, account)
    account.channels.set(key, { type, name, since: Date.now() })
    this.#owners.set(key, id)
    return () => {
      if (!this.#engine.channels.exists(type, name)) this.#forget(key)
    }
  }

  /** Stops counting a channel that another node deleted: a different caller may create it again. */
  #counts(key: string): boolean {
    const id = this.#owners.get(key)
    const counted = id === undefined ? undefined : this.#accounts.get(id)?.channels.get(key)
    if (counted === undefined) return false
    if (Date.now() - counted.since < EXPECTED_MS) return true
    this.#forget(key)
    return false
  }

  /** Stops counting a channel that was deleted. */
  deleted(type: ChannelType, name: string): void {
    this.#forget(`${type} ${name}`)
  }

  #forget(key: string): void {
    const id = this.#owners.get(key)
    if (id === undefined) return
    this.#owners.delete(key)
    const account = this.#accounts.get(id)
    account?.channels.delete(key)
    if (account?.channels.size === 0) this.#accounts.delete(id)
  }

  /** Stops counting channels that disappeared without a delete on this node. */
  #recount(account: Account): void {
    const now = Date.now()
    if (now - account.recountedAt < RECOUNT_MS) return
    account.recountedAt = now
    const { channels } = this.#engine
    for (const [key, { type, name, since }] of account.channels) {
      if (now - since >= EXPECTED_MS && !channels.exists(type, name)) this.#forget(key)
    }
  }

  /**
   * Counts a request that waits for its answer. Call the returned function when the wait has ended.
   * @throws BrokerError CALLER_LIMIT
   */
  beginWaiting(caller: Caller): (() => void) | undefined {
    const max = this.#options.limitsOf(caller).waitingRequests
    if (max === 0) return undefined
    const id = accountOf(caller)
    const count = this.#waiting.get(id) ?? 0
    if (count >= max) {
      const text = `the caller has ${max} commands and queries waiting for an answer, the maximum for one caller; wait until some have ended`
      throw this.#refusal('caller_waiting_requests', caller, max, text)
    }
    this.#waiting.set(id, count + 1)
    return () => {
      const left = (this.#waiting.get(id) ?? 1) - 1
      if (left > 0) this.#waiting.set(id, left)
      else this.#waiting.delete(id)
    }
  }

  #refusal(name: CallerLimitName, caller: Caller, limit: number, text: string): BrokerError {
    try {
      this.#options.onLimit(name, caller)
    } catch {}
    return new BrokerError('CALLER_LIMIT', text, { name, limit })
  }
}

/** Returns the account whose limits apply to a caller. */
export function accountOf({ account, clientId }: Caller): string {
  return account ?? clientId
}
