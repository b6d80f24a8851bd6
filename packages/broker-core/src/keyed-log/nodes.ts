import { createHash } from 'node:crypto'

/** The part of a lease for which its own node relies on it. The rest is the time to end its work. */
const SAFE_PART = 0.6

export interface NodesOptions {
  /** Time without a sign of life after which a node counts as stopped, in ms. */
  readonly leaseMs: number
  /** `false` if no other node uses the store: the lease of this node then never ends, and every other node is lost. */
  readonly shared: boolean
}

/**
 * The nodes that share a store, as one of them judges which of them live. Each node shows signs of life, such as an
 * entry in a {@link KeyedLog} or an event; a sign renews its lease. Other nodes measure the lease from the moment in
 * which they heard the sign, which is later than its start: a node stops its work before another one takes over, also
 * if their clocks show different times.
 */
export class Nodes {
  readonly #self: string
  readonly #leaseMs: number
  readonly #shared: boolean
  /** The time of the last sign of each other node, by `performance.now()`; minus infinity for one that has stopped. */
  readonly #heard = new Map<string, number>()
  #renewedAt = Number.NEGATIVE_INFINITY

  constructor(self: string, { leaseMs, shared }: NodesOptions) {
    this.#self = self
    this.#leaseMs = leaseMs
    this.#shared = shared
  }

  /** `true` while no other node may consider this one lost. */
  get held(): boolean {
    return !this.#shared || performance.now() - this.#renewedAt < this.#leaseMs * SAFE_PART
  }

  /**
   * Records a sign of life of this node that reached the store.
   * @param startedAt The time at which it was sent, by `performance.now()`
   */
  renewed(startedAt: number): void {
    if (!this.held) this.#renewOthers()
    this.#renewedAt = startedAt
  }

  /** A node that was cut off or suspended received no signs of life either, so each other node gets a full lease. */
  #renewOthers(): void {
    for (const [node, heard] of this.#heard) if (Number.isFinite(heard)) this.heard(node)
  }

  /** Records a sign of life of another node. */
  heard(node: string): void {
    if (node !== this.#self) this.#heard.set(node, performance.now())
  }

  /** Records that another node has stopped. */
  gone(node: string): void {
    if (node !== this.#self) this.#heard.set(node, Number.NEGATIVE_INFINITY)
  }

  /**
   * Returns `true` if the lease of another node has ended, or if the name is empty. The first question about a node
   * starts its lease.
   */
  isLost(node: string): boolean {
    if (node === '' || !this.#shared) return true
    const heard = this.#heard.get(node)
    if (heard === undefined) this.heard(node)
    return heard !== undefined && performance.now() - heard > this.#leaseMs && this.held
  }

  /** Returns the nodes whose leases ended longer than `ms` ago, without those that have stopped. */
  lostFor(ms: number): readonly string[] {
    const limit = performance.now() - this.#leaseMs - ms
    return [...this.#heard].flatMap(([node, heard]) => (heard < limit && Number.isFinite(heard) ? [node] : []))
  }

  forget(node: string): void {
    this.#heard.delete(node)
  }

  /** Forgets all other nodes. */
  retain(nodes: ReadonlySet<string>): void {
    for (const node of this.#heard.keys()) if (!nodes.has(node)) this.#heard.delete(node)
  }

  /** Returns `true` if this node is the first of all live nodes to take over a key. All nodes agree on the order. */
  isFirstFor(key: string): boolean {
    const live = [...this.#heard.keys()].filter((node) => !this.isLost(node))
    return positionFor(key, this.#self, live) === 0
  }
}

/** Returns the number of other nodes that come before a node to take over a key. All nodes agree on the order. */
export function positionFor(key: string, self: string, others: readonly string[]): number {
  const own = rank(self, key)
  return others.filter((node) => rank(node, key) > own).length
}

function rank(node: string, key: string): string {
  return createHash('sha256').update(`${node} ${key}`).digest('hex')
}
