import type { AgentCard, StoredCard } from '../card/agent-card.ts'
import type { AgentRecord } from '../discovery/discovery-entry.ts'

/** A registered agent as this node knows it. */
export class AgentEntry {
  readonly record: AgentRecord
  /** The sequence of the agent's last entry in the discovery log. */
  readonly sequence: number
  #lastSeenMs: number
  #shown: AgentCard | undefined

  /** @param heardMs The time when this node last heard of the agent, which may be newer than the log. */
  constructor(record: AgentRecord, sequence: number, heardMs = 0) {
    this.record = record
    this.sequence = sequence
    this.#lastSeenMs = Math.max(record.lastSeenMs, heardMs)
  }

  get stored(): StoredCard {
    return this.record.card
  }

  get lastSeenMs(): number {
    return this.#lastSeenMs
  }

  /** `true` when this node heard of the agent after the last entry of the log. */
  get ahead(): boolean {
    return this.#lastSeenMs > this.record.lastSeenMs
  }

  /** Records that the agent was alive at this time. An earlier time changes nothing. */
  seen(nowMs: number): void {
    if (nowMs <= this.#lastSeenMs) return
    this.#lastSeenMs = nowMs
    this.#shown = undefined
  }

  get card(): AgentCard {
    this.#shown ??= { ...this.record.card, last_seen: new Date(this.#lastSeenMs).toISOString() }
    return this.#shown
  }
}
