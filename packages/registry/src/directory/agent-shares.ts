import { ANONYMOUS_ACCOUNT, half } from '@signalbox/http-kit'

import { RegistryError } from '../errors.ts'
import type { RegistryCaller } from '../options.ts'
import type { Place } from './max-agents.ts'

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

export interface ShareOptions {
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
  readonly #owned = new Map<string, Set<string>>()
  /** New agents whose entries are being written: by account, the number of calls for each agent. */
  readonly #underWay = new Map<string, Map<string, number>>()

  constructor(options: ShareOptions) {
    this.#options = options
  }

  add(account: string, agentId: string): void {
    const owned = this.#owned.get(account)
    if (owned === undefined) this.#owned.set(account, new Set([agentId]))
    else owned.add(agentId)
  }

  delete(account: string, agentId: string): void {
    const owned = this.#owned.get(account)
    owned?.delete(agentId)
    if (owned?.size === 0) this.#owned.delete(account)
  }

  /** Returns a place among the caller's agents; `take` throws RegistryError CALLER_AGENT_LIMIT. */
  placeFor(agentId: string, caller: RegistryCaller): Place {
    const account = accountOf(caller)
    let taken = false
    return {
      take: () => {
        if (taken) return
        const most = this.#options.maxAgentsOf(caller)
        if (most > 0 && this.#countExcept(account, agentId) >= most) {
          this.#options.limited(account)
          throw refusal(account, most)
        }
        const calls = this.#underWay.get(account) ?? new Map<string, number>()
        this.#underWay.set(account, calls.set(agentId, (calls.get(agentId) ?? 0) + 1))
        taken = true
      },
      release: () => {
        if (!taken) return
        taken = false
        const calls = this.#underWay.get(account)
        const left = (calls?.get(agentId) ?? 1) - 1
        if (left > 0) calls?.set(agentId, left)
        else calls?.delete(agentId)
        if (calls?.size === 0) this.#underWay.delete(account)
      },
    }
  }

  #countExcept(account: string, agentId: string): number {
    const owned = this.#owned.get(account)
    let count = owned?.size ?? 0
    for (const other of this.#underWay.get(account)?.keys() ?? []) {
      if (other !== agentId && owned?.has(other) !== true) count++
    }
    return count
  }
}

function refusal(account: string, most: number): RegistryError {
  const text = account.startsWith(ANONYMOUS_ACCOUNT)
    ? `your network address owns ${most} agents, the maximum without authentication; deregister some, or authenticate`
    : `this caller owns ${most} agents, the maximum (LIMITS_CALLER_AGENTS); deregister some, or raise the limit`
  return new RegistryError('CALLER_AGENT_LIMIT', text, [{ limit: 'caller_agents', most }])
}
