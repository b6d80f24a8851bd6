import type { AgentTarget } from '@signalbox/registry'

/** The time for which an instance is passed over after a failed connection, in ms. Doubles from the first to the last. */
const FIRST_PAUSE_MS = 1_000
const LAST_PAUSE_MS = 10_000

/** One instance of an agent on this node. An agent without instances is its own only instance. */
export class ServedInstance {
  readonly id: string
  /** Undefined when the instance is not registered any more. */
  target: AgentTarget | undefined
  /** The number of calls and streams under way. */
  inFlight = 0
  #pauseMs = 0
  #pausedUntil = 0

  constructor(id: string, target: AgentTarget) {
    this.id = id
    this.target = target
  }

  /** The monotonic time until which calls prefer other instances; 0 for an instance that answers. */
  get pausedUntil(): number {
    return this.#pausedUntil
  }

  /** Records that the instance answered a call. */
  answered(): void {
    this.#pauseMs = this.#pausedUntil = 0
  }

  /**
   * Records that the instance could not be reached. Without the pause, a dead instance would get every call: it has
   * the fewest under way.
   */
  unreached(): void {
    const now = performance.now()
    // The calls that were under way fail at the same time, for one reason.
    if (now < this.#pausedUntil) return
    this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, FIRST_PAUSE_MS), LAST_PAUSE_MS)
    this.#pausedUntil = now + this.#pauseMs
  }
}
