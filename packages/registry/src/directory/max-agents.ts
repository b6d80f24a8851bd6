import { RegistryError } from '../errors.ts'

/** Knows who is registered. */
export interface Registered {
  readonly size: number
  has(agentId: string): boolean
}

/** A place for a new agent, held until its entry was applied or has failed. */
export interface Place {
  /** Takes the place, if it is not taken. @throws RegistryError AGENT_LIMIT */
  take(): void
  release(): void
}

/** Keeps MaxAgents (R7): exactly on this node, and over the cluster by taking back what came too late. */
export class MaxAgents {
  readonly #limit: number
  readonly #registered: Registered
  /** New agents whose entries are under way, with how many calls for each. */
  readonly #underWay = new Map<string, number>()
  /** Registrations over the limit, by agent, with the sequence of their entry: they are being taken back. */
  readonly #excess = new Map<string, number>()

  /** @throws RangeError unless `limit` is a whole number; 0 is no limit */
  constructor(limit: number, registered: Registered) {
    if (!Number.isSafeInteger(limit) || limit < 0) {
      throw new RangeError(`maxAgents: ${limit}; allowed is a whole number of at least 0`)
    }
    this.#limit = limit
    this.#registered = registered
  }

  placeFor(agentId: string): Place {
    let taken = false
    return {
      take: () => {
        if (taken) return
        if (this.#limit > 0 && this.#takenBeside(agentId) >= this.#limit) throw this.refusal()
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

  #takenBeside(agentId: string): number {
    let count = this.#registered.size
    for (const other of this.#underWay.keys()) {
      if (other !== agentId && !this.#registered.has(other)) count++
    }
    return count
  }

  /**
   * A new agent was applied, in the order of the log, which is the same on every node: whether it is one too many, and so
   * the one to take back.
   */
  exceededBy(agentId: string, sequence: number): boolean {
    if (this.#limit === 0 || this.#registered.size <= this.#limit) return false
    this.#excess.set(agentId, sequence)
    return true
  }

  /**
   * Whether the registration that a call wrote is one too many; asked once its entry has been passed in the log. Where the
   * agent is not there then, its entry was taken back, and compacted away, before this node came to read it.
   */
  isExcess(agentId: string, sequence: number): boolean {
    if (this.#limit === 0) return false
    return this.#excess.get(agentId) === sequence || !this.#registered.has(agentId)
  }

  /**
   * An agent is gone. Another node may take an excess back before the call that registered it here has heard of its own
   * entry: what that call is to be told is kept until it ends.
   */
  forget(agentId: string): void {
    if (!this.#underWay.has(agentId)) this.#excess.delete(agentId)
  }

  refusal(): RegistryError {
    const text = `the limit of ${this.#limit} registered agents is reached; deregister one, or raise MAX_AGENTS`
    return new RegistryError('AGENT_LIMIT', text, [{ limit: this.#limit }])
  }
}
