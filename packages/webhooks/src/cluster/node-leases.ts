import { createHash } from 'node:crypto'

/** The part of a lease for which its node delivers. The rest is the time to end its attempts. */
const SAFE_PART = 0.6

/**
 * The leases of the nodes that serve subscriptions. A node renews its lease by an entry of the log. Other nodes measure
 * the lease from the moment in which they read that entry, which is later than its start: a node stops before another
 * one takes over, also if their clocks show different times.
 */
export class NodeLeases {
  readonly #self: string
  readonly #leaseMs: number
  readonly #shared: boolean
  /** The time of the last renewal of each other node, by `performance.now()`. */
  readonly #heard = new Map<string, number>()
  #renewedAt = Number.NEGATIVE_INFINITY

  /** @param shared `false` if no other node uses the store: the lease of this node then never ends */
  constructor(self: string, { leaseMs, shared }: { readonly leaseMs: number; readonly shared: boolean }) {
    this.#self = self
    this.#leaseMs = leaseMs
    this.#shared = shared
  }

  /** `true` while this node may deliver. */
  get held(): boolean {
    return !this.#shared || performance.now() - this.#renewedAt < this.#leaseMs * SAFE_PART
  }

  /** Records a renewal of this node that began at `startedAt` and succeeded. */
  renewed(startedAt: number): void {
    this.#renewedAt = startedAt
  }

  /** Records a renewal of a node. */
  heard(node: string): void {
    this.#heard.set(node, performance.now())
  }

  /** Records that a node has stopped. */
  gone(node: string): void {
    this.#heard.set(node, Number.NEGATIVE_INFINITY)
  }

  /** Returns `true` if the lease of another node has ended. The first question about a node starts its lease. */
  isLost(node: string): boolean {
    if (node === '' || !this.#shared) return true
    const heard = this.#heard.get(node)
    if (heard === undefined) this.heard(node)
    return heard !== undefined && performance.now() - heard > this.#leaseMs
  }

  /** Returns the nodes whose leases ended longer than `ms` ago. */
  lostFor(ms: number): readonly string[] {
    const limit = performance.now() - this.#leaseMs - ms
    return [...this.#heard].flatMap(([node, heard]) => (heard < limit && heard > 0 ? [node] : []))
  }

  forget(node: string): void {
    this.#heard.delete(node)
  }

  /** Returns `true` if this node is the first of all live nodes to take over a subscription. */
  isFirstFor(id: string): boolean {
    const others = [...this.#heard.keys()].filter((node) => node !== this.#self && !this.isLost(node))
    const own = rank(this.#self, id)
    return others.every((node) => rank(node, id) < own)
  }
}

function rank(node: string, id: string): string {
  return createHash('sha256').update(`${node} ${id}`).digest('hex')
}
