import { RegistryError } from '../errors.ts'

/** The registered agents that the limit counts. */
export interface Registered {
  readonly size: number
  has(agentId: string): boolean
}

/** A reservation for a new agent, held until its entry was applied or has failed. */
export interface Place {
  /** Takes the place, unless it is taken already. @throws RegistryError AGENT_LIMIT */
  take(): void
  release(): void
}

/** The limit MaxAgents. It is exact on one node; in a cluster, registrations that exceed it are withdrawn. */
export class MaxAgents {
  readonly #limit: number
  readonly #registered: Registered
  /** New agents whose entries are being written, with the number of calls for each. */
  readonly #underWay = new Map<string, number>()
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

  placeFor(agentId: string): Place {
    let taken = false
    return {
      take: () => {
        if (taken) return
        if (this.#limit > 0 && this.#countExcept(agentId) >= this.#limit) throw this.refusal()
        this.#underWay.set(agentId, (this.#underWay.get(agentId) ?? 0) + 1)
        taken = true
      },
      release: () => {
        if (!taken) return
        taken = false
        const calls = (this.#underWay.get(agentId) ?? 1) - 1
        if (calls > 0) this.#underWay.set(agentId, calls)
        else {
          this.#underWay.delete(agentId)
          if (!this.#registered.has(agentId)) this.#excess.delete(agentId)
        }
      },
    }
  }

  #countExcept(agentId: string): number {
    let count = this.#registered.size
    for (const other of this.#underWay.keys()) {
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
    if (!this.#underWay.has(agentId)) this.#excess.delete(agentId)
  }

  refusal(): RegistryError {
    const text = `the limit of ${this.#limit} registered agents is reached; deregister one, or raise CONNECTORSA2_A_MAX_AGENTS`
    return new RegistryError('AGENT_LIMIT', text, [{ limit: this.#limit }])
  }
}
