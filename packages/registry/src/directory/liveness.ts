import { DelayQueue } from './delay-queue.ts'

/** The number of times per TTL that an agent's `last_seen` may be replicated. */
const REPLICATIONS_PER_TTL = 5
/** The interval of replication when agents do not expire: that of the default TTL. */
const REPLICATION_MS_WITHOUT_TTL = 60_000

export interface LivenessDuties {
  /** Called with the clocks of agents and instances that sent no heartbeat for the TTL. */
  expire(clocks: readonly string[]): void
  /**
   * Called with agents that may be replicated again. Those that this node heard of in the meantime are due.
   */
  replicate(agentIds: readonly string[]): void
}

/**
 * Two clocks per agent: until it expires, and until its `last_seen` may be replicated again. Each instance of an agent
 * has its own clock until it expires; they are replicated together.
 */
export class Liveness {
  readonly #expiry: DelayQueue | undefined
  readonly #replication: DelayQueue

  /** @throws RangeError for a TTL that is negative or not a number */
  constructor(ttlSeconds: number, duties: LivenessDuties) {
    if (!(ttlSeconds >= 0)) throw new RangeError(`agentTtlSeconds is ${ttlSeconds}; it must be a number of at least 0`)
    const ttlMs = ttlSeconds * 1000
    this.#expiry = ttlMs === 0 ? undefined : new DelayQueue(ttlMs, (clocks) => duties.expire(clocks))
    this.#replication = new DelayQueue(ttlMs / REPLICATIONS_PER_TTL || REPLICATION_MS_WITHOUT_TTL, (ids) =>
      duties.replicate(ids),
    )
  }

  /** Records an entry of the agent in the log. */
  replicated(agentId: string): void {
    this.#replication.touch(agentId)
  }

  /**
   * Records that this node heard of the owner of a clock.
   * @returns `true` when the caller must replicate it now; otherwise `replicate` is called when it is due
   */
  heard(agentId: string, clock: string): boolean {
    this.#expiry?.touch(clock)
    if (this.#replication.has(agentId)) return false
    this.#replication.touch(agentId)
    return true
  }

  /** Records that the agent's `last_seen` is being replicated. */
  replicating(agentId: string): void {
    this.#replication.touch(agentId)
  }

  /** Records that a replication failed, so that the next heartbeat tries again. */
  replicationFailed(agentId: string): void {
    this.#replication.delete(agentId)
  }

  /** Starts or restarts the expiry of the owner of a clock. */
  restart(clock: string): void {
    this.#expiry?.touch(clock)
  }

  /** Stops a clock. */
  stop(clock: string): void {
    this.#expiry?.delete(clock)
  }

  /** Restarts the expiry of all agents after the store was unavailable: their heartbeats may have failed. */
  outage(): void {
    this.#expiry?.touchAll()
  }

  /** Stops the replication of a removed agent. */
  forget(agentId: string): void {
    this.#replication.delete(agentId)
  }

  close(): void {
    this.#expiry?.close()
    this.#replication.close()
  }
}
