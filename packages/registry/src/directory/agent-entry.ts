import type { AgentCard, StoredCard } from '../card/agent-card.ts'
import type { AgentRecord } from '../discovery/discovery-entry.ts'

/** A registered agent as this node knows it. */
export class AgentEntry {
  readonly record: AgentRecord
  /** Of the agent's last entry in the discovery log. */
  readonly sequence: number
  #lastSeenMs: number
  #shown: AgentCard | undefined

  /** `heardMs`: when this node last heard of the agent, which the log may not know yet. */
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

  /** Whether this node heard of the agent after what the log knows. */
  get ahead(): boolean {
    return this.#lastSeenMs > this.record.lastSeenMs
  }

  /** Heard of now; time never goes back. */
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
