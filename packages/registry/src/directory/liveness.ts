import { DelayQueue } from './delay-queue.ts'

/** `last_seen` replicates at most every so much of the TTL, per agent (R6). */
const REPLICATIONS_PER_TTL = 5
/** Where nothing expires, `last_seen` replicates as it does by default: every minute. */
const REPLICATION_MS_WITHOUT_TTL = 60_000

export interface LivenessDuties {
  /** Nothing was heard of these agents for the TTL. */
  expire(agentIds: readonly string[]): void
  /** The log may be told of these agents again, if this node heard of them meanwhile. */
  replicate(agentIds: readonly string[]): void
}

/** Two clocks for each agent: until it expires (R5), and until its `last_seen` may be replicated again (R6). */
export class Liveness {
  readonly #expiry: DelayQueue | undefined
  readonly #replication: DelayQueue

  /** @throws RangeError for a TTL that is negative or no number */
  constructor(ttlSeconds: number, duties: LivenessDuties) {
    if (!(ttlSeconds >= 0)) throw new RangeError(`agentTtlSeconds: ${ttlSeconds}; allowed is a number of at least 0`)
    const ttlMs = ttlSeconds * 1000
    this.#expiry = ttlMs === 0 ? undefined : new DelayQueue(ttlMs, (ids) => duties.expire(ids))
    this.#replication = new DelayQueue(ttlMs / REPLICATIONS_PER_TTL || REPLICATION_MS_WITHOUT_TTL, (ids) =>
      duties.replicate(ids),
    )
  }

  /** The log told of the agent. `news`: more than this node knew; its own heartbeats that come back are none. */
  replicated(agentId: string, news: boolean): void {
    if (news) this.#expiry?.touch(agentId)
    this.#replication.touch(agentId)
  }

  /**
   * The agent was heard of on this node.
   * @returns whether the log is to be told now; otherwise that is for `replicate`, in its time
   */
  heard(agentId: string): boolean {
    this.#expiry?.touch(agentId)
    if (this.#replication.has(agentId)) return false
    this.#replication.touch(agentId)
    return true
  }

  /** The log is being told of the agent, of which was heard before. */
  replicating(agentId: string): void {
    this.#replication.touch(agentId)
  }

  /** The log could not be told: the next time that the agent is heard of will try again. */
  replicationFailed(agentId: string): void {
    this.#replication.delete(agentId)
  }

  /** The agent was due and lives on: its time until expiry begins anew. */
  spared(agentId: string): void {
    this.#expiry?.touch(agentId)
  }

  /** The store was away: what could not be heard is held against nobody, and everybody's time begins anew. */
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
