import type { RoutingTable } from './routing-table.ts'

const EMPTY: RoutingTable = Object.freeze({ rules: [] })

/** The routing table in force. It may be replaced at any time: a message that is on its way ends by the old one. */
export class Routing {
  #table: RoutingTable

  constructor(table: RoutingTable = EMPTY) {
    this.#table = table
  }

  get table(): RoutingTable {
    return this.#table
  }

  /** False when there is no rule, so that senders need not look further. */
  get active(): boolean {
    return this.#table.rules.length > 0
  }

  replace(table: RoutingTable): void {
    this.#table = table
  }
}
