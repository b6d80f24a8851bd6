import { MAX_TIMER_MS, MultiMap } from '@signalbox/broker-core/internal'

import type { IdHold } from '../discovery/discovery-entry.ts'

/** The number of times per TTL that an agent's `last_seen` may be replicated. */
const REPLICATIONS_PER_TTL = 5
/** The interval of replication when agents do not expire: that of the default TTL. */
const REPLICATION_MS_WITHOUT_TTL = 60_000

interface LivenessDuties {
  /** Called with the clocks of agents and instances that sent no heartbeat for the TTL. */
  expire(clocks: readonly string[]): void
  /**
   * Called with agents that may be replicated again. An agent with a newer heartbeat on this node is due.
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
   * Records a heartbeat or registration of the owner of a clock.
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

/** The maximum number of ids that are held for one owner; beyond it the oldest is freed. */
const MAX_PER_OWNER = 1_000

interface HeldId {
  readonly owner: string
  /** The sequence of the entry that holds the id. */
  readonly sequence: number
}

/** The ids of expired agents that only their owners may register, until their time is over. */
export class HeldIds {
  readonly #free: (agentId: string, sequence: number) => void
  readonly #held = new Map<string, HeldId>()
  /** Oldest first. */
  readonly #byOwner = new MultiMap<string, string>()
  readonly #ends: DelayQueue

  /** @param free Called with each id whose time is over, on every node. */
  constructor(holdMs: number, free: (agentId: string, sequence: number) => void) {
    this.#free = free
    this.#ends = new DelayQueue(holdMs, (agentIds) => {
      for (const agentId of agentIds) this.#end(agentId)
    })
  }

  get size(): number {
    return this.#held.size
  }

  ids(): readonly string[] {
    return [...this.#held.keys()]
  }

  set(agentId: string, { owner, untilMs }: IdHold, sequence: number): void {
    this.delete(agentId)
    this.#held.set(agentId, { owner, sequence })
    this.#byOwner.add(owner, agentId)
    const owned = this.#byOwner.get(owner)
    const [oldest] = owned
    if (untilMs <= Date.now()) this.#end(agentId)
    else if (owned.size > MAX_PER_OWNER && oldest !== undefined) this.#end(oldest)
    if (this.#held.has(agentId)) this.#ends.touch(agentId)
  }

  delete(agentId: string): void {
    const held = this.#held.get(agentId)
    if (held === undefined) return
    this.#held.delete(agentId)
    this.#ends.delete(agentId)
    this.#byOwner.delete(held.owner, agentId)
  }

  close(): void {
    this.#ends.close()
  }

  #end(agentId: string): void {
    const held = this.#held.get(agentId)
    if (held === undefined) return
    this.delete(agentId)
    this.#free(agentId, held.sequence)
  }
}

/**
 * Reports the ids that were not touched for a fixed time. The time is the same for all ids, so they become
 * due in the order of their last touches: a touch takes constant time, and one timer, for the oldest id, is
 * enough.
 */
export class DelayQueue {
  readonly #delayMs: number
  readonly #onDue: (ids: readonly string[]) => void
  /** The monotonic time of the last touch, oldest first. */
  readonly #touched = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  /** @param onDue Called with the ids that are due; the queue has already removed them. */
  constructor(delayMs: number, onDue: (ids: readonly string[]) => void) {
    this.#delayMs = delayMs
    this.#onDue = onDue
  }

  /** Starts or restarts the id's time. */
  touch(id: string): void {
    this.#touched.delete(id)
    this.#touched.set(id, performance.now())
    this.#arm()
  }

  /** Restarts the time of every id. */
  touchAll(): void {
    const now = performance.now()
    for (const id of this.#touched.keys()) this.#touched.set(id, now)
  }

  has(id: string): boolean {
    return this.#touched.has(id)
  }

  delete(id: string): void {
    this.#touched.delete(id)
  }

  close(): void {
    this.#closed = true
    this.#touched.clear()
    clearTimeout(this.#timer)
  }

  /** A touch does not reset a running timer: if the timer fires too early, it is set again. */
  #arm(): void {
    if (this.#timer !== undefined || this.#closed) return
    const oldest = this.#touched.values().next()
    if (oldest.done === true) return
    const wait = Math.min(Math.max(Math.ceil(oldest.value + this.#delayMs - performance.now()), 1), MAX_TIMER_MS)
    this.#timer = setTimeout(() => this.#fire(), wait)
    this.#timer.unref()
  }

  #fire(): void {
    this.#timer = undefined
    const latest = performance.now() - this.#delayMs
    const due: string[] = []
    for (const [id, touchedAt] of this.#touched) {
      if (touchedAt > latest) break
      this.#touched.delete(id)
      due.push(id)
    }
    if (due.length > 0) this.#onDue(due)
    this.#arm()
  }
}
