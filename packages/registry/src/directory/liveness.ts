import { DelayQueue } from './delay-queue.ts'

/** The number of times per TTL that an agent's `last_seen` may be replicated. */
const REPLICATIONS_PER_TTL = 5
/** The interval of replication when agents do not expire: that of the default TTL. */
const REPLICATION_MS_WITHOUT_TTL = 60_000

export interface LivenessDuties {
  /** Called with agents that sent no heartbeat for the TTL. */
  expire(agentIds: readonly string[]): void
  /**
   * Called with agents that may be replicated again. Those that this node heard of in the meantime are due.
   */
  replicate(agentIds: readonly string[]): void
}

/** Two clocks per agent: until it expires, and until its `last_seen` may be replicated again. */
export class Liveness {
  readonly #expiry: DelayQueue | undefined
  readonly #replication: DelayQueue

  /** @throws RangeError for a TTL that is negative or not a number */
  constructor(ttlSeconds: number, duties: LivenessDuties) {
    if (!(ttlSeconds >= 0)) throw new RangeError(`agentTtlSeconds is ${ttlSeconds}; it must be a number of at least 0`)
    const ttlMs = ttlSeconds * 1000
    this.#expiry = ttlMs === 0 ? undefined : new DelayQueue(ttlMs, (ids) => duties.expire(ids))
    this.#replication = new DelayQueue(ttlMs / REPLICATIONS_PER_TTL || REPLICATION_MS_WITHOUT_TTL, (ids) =>
      duties.replicate(ids),
    )
  }

  /**
   * Records an entry of the agent in the log.
   * @param news `true` when the entry is newer than this node's knowledge; `false` for its own heartbeats
   * that come back.
   */
  replicated(agentId: string, news: boolean): void {
    if (news) this.#expiry?.touch(agentId)
    this.#replication.touch(agentId)
  }

  /**
   * Records that this node heard of the agent.
   * @returns `true` when the caller must replicate it now; otherwise `replicate` is called when it is due
   */
  heard(agentId: string): boolean {
    this.#expiry?.touch(agentId)
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

  /** Restarts the expiry of an agent that was due and is still alive. */
  spared(agentId: string): void {
    this.#expiry?.touch(agentId)
  }

  /** Restarts the expiry of all agents after the store was unavailable: their heartbeats may have failed. */
  outage(): void {
    this.#expiry?.touchAll()
  }

  forget(agentId: string): void {
    this.#expiry?.delete(agentId)
    this.#replication.delete(agentId)
  }

  close(): void {
    this.#expiry?.close()
    this.#replication.close()
  }
}
