import type { RoutingTable } from './routing-table.ts'

const EMPTY: RoutingTable = Object.freeze({ rules: [] })

/**
 * The current routing table. It can be replaced at any time; routing that has started continues with the previous
 * table.
 */
export class Routing {
  #table: RoutingTable

  constructor(table: RoutingTable = EMPTY) {
    this.#table = table
  }

  get table(): RoutingTable {
    return this.#table
  }

  /** `false` if there is no rule, so that senders can skip the routing. */
  get active(): boolean {
    return this.#table.rules.length > 0
  }

  replace(table: RoutingTable): void {
    this.#table = table
  }
}
