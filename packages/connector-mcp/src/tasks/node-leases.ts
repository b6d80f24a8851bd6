/**
 * The leases of the nodes that run tasks. A node renews its lease with each announcement. The times are those at which
 * this node has heard the announcements, so the clocks of nodes may differ.
 */
export class NodeLeases {
  readonly #self: string
  readonly #leaseMs: number
  /** The time of the last announcement of each node, by `performance.now()`. */
  readonly #heard = new Map<string, number>()

  /** @param leaseMs Time without an announcement after which a node counts as stopped, in ms */
  constructor(self: string, leaseMs: number) {
    this.#self = self
    this.#leaseMs = leaseMs
  }

  /** Renews the lease of a node. */
  renew(node: string): void {
    const now = performance.now()
    // A node that did not hear itself did not hear the others either.
    if (node === this.#self && !this.#hearsItself(now))
      for (const other of this.#heard.keys()) this.#heard.set(other, now)
    this.#heard.set(node, now)
  }

  /** Returns `true` if the lease of another node has ended. The first question about a node starts its lease. */
  isLost(node: string): boolean {
    const now = performance.now()
    const heard = this.#heard.get(node)
    if (heard === undefined) this.#heard.set(node, now)
    return heard !== undefined && now - heard > this.#leaseMs && this.#hearsItself(now)
  }

  /** Forgets the nodes that run no tasks. */
  retain(nodes: ReadonlySet<string>): void {
    for (const node of this.#heard.keys()) if (node !== this.#self && !nodes.has(node)) this.#heard.delete(node)
  }

  #hearsItself(now: number): boolean {
    return now - (this.#heard.get(this.#self) ?? Number.NEGATIVE_INFINITY) <= this.#leaseMs / 2
  }
}
