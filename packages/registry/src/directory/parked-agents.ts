import { MAX_TIMER_MS } from '@signalbox/broker-core/internal'

/** The interval at which an agent whose removal failed is reported again, in ms. */
const RETRY_MS = 30_000

/** The shortest wait of the timer, in ms, so that agents that were parked together are reported together. */
const SHORTEST_WAIT_MS = 50

/**
 * Reports parked agents whose parking time is over. Uses the wall clock, because the time also passes while no server
 * runs.
 */
export class ParkedAgents {
  readonly #onEnd: (agentIds: readonly string[]) => void
  /** The end of each parking, in ms since the epoch. */
  readonly #ends = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  /** The time for which the timer is set. */
  #next = Infinity
  #closed = false

  /** @param onEnd Called with the agents whose time is over, and again every 30 s until they are deleted. */
  constructor(onEnd: (agentIds: readonly string[]) => void) {
    this.#onEnd = onEnd
  }

  set(agentId: string, endMs: number): void {
    this.#ends.set(agentId, endMs)
    this.#arm(endMs)
  }

  delete(agentId: string): void {
    this.#ends.delete(agentId)
  }

  close(): void {
    this.#closed = true
    this.#ends.clear()
    clearTimeout(this.#timer)
  }

  /** Sets the timer, unless it fires earlier: then it is set again. */
  #arm(endMs: number): void {
    if (endMs >= this.#next || this.#closed) return
    clearTimeout(this.#timer)
    this.#next = endMs
    const wait = Math.min(Math.max(endMs - Date.now(), SHORTEST_WAIT_MS), MAX_TIMER_MS)
    this.#timer = setTimeout(() => this.#fire(), wait)
    this.#timer.unref()
  }

  #fire(): void {
    this.#next = Infinity
    const now = Date.now()
    const due: string[] = []
    let next = Infinity
    for (const [agentId, endMs] of this.#ends) {
      const retried = endMs <= now ? now + RETRY_MS : endMs
      if (endMs <= now) {
        due.push(agentId)
        this.#ends.set(agentId, retried)
      }
      next = Math.min(next, retried)
    }
    if (next < Infinity) this.#arm(next)
    if (due.length > 0) this.#onEnd(due)
  }
}
