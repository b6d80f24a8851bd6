import { ANONYMOUS_ACCOUNT, half } from '@signalbox/http-kit'

import { RegistryError } from '../errors.ts'
import type { RegistryCaller } from '../options.ts'
import type { Place } from './max-agents.ts'

/** Agents that one verified caller may own, by default. */
const DEFAULT_PER_CALLER = 1_000
/** Agents that one network address may own while callers are anonymous and MaxAgents is 0. */
const ANONYMOUS_WITHOUT_MAX = 10_000

/** The account that a caller's agents count against. */
export function accountOf({ account, clientId }: RegistryCaller): string {
  return account ?? `client:${clientId}`
}

/**
 * Makes the usual answer to how many agents a caller may own: a verified caller `perCaller`, a network address of anonymous
 * callers half of MaxAgents where that is more, or 10,000 where MaxAgents is no limit.
 * @param perCaller 0 is no limit, for anonymous callers too. @default 1000
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
  /** 0 is no limit. */
  readonly maxAgentsOf: (caller: RegistryCaller) => number
  /** A registration was refused. */
  readonly limited: (account: string) => void
}

/** Who owns how many agents: keeps one caller from registering all there may be, on this node exactly. */
export class AgentShares {
  readonly #options: ShareOptions
  readonly #owned = new Map<string, Set<string>>()
  /** New agents whose entries are under way, by account, with how many calls for each. */
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

  /** A place among the caller's agents; taking it throws RegistryError CALLER_AGENT_LIMIT. */
  placeFor(agentId: string, caller: RegistryCaller): Place {
    const account = accountOf(caller)
    let taken = false
    return {
      take: () => {
        if (taken) return
        const most = this.#options.maxAgentsOf(caller)
        if (most > 0 && this.#takenBeside(account, agentId) >= most) {
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

  #takenBeside(account: string, agentId: string): number {
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
    ? `your network address owns ${most} agents, as many as it may without authentication; deregister some`
    : `this caller owns ${most} agents, as many as it may (LIMITS_CALLER_AGENTS); deregister some`
  return new RegistryError('CALLER_AGENT_LIMIT', text, [{ limit: 'caller_agents', most }])
}
