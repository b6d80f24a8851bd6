import type { IdHold } from '../discovery/discovery-entry.ts'
import { DelayQueue } from './delay-queue.ts'

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
  readonly #byOwner = new Map<string, Set<string>>()
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
    const owned = this.#byOwner.get(owner) ?? new Set()
    this.#byOwner.set(owner, owned.add(agentId))
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
    const owned = this.#byOwner.get(held.owner)
    owned?.delete(agentId)
    if (owned?.size === 0) this.#byOwner.delete(held.owner)
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
