import type { QueuedMessage } from '../store/message-rows.ts'

/** The most heads of groups that back off in one queue. At this number it delivers nothing until one is due. */
export const MAX_BACKING_OFF = 100_000
/** Due times are rounded up to a multiple of this, in ms, so that a timer handles many messages. */
const STEP_MS = 50
/** The longest wait of the timer, in ms, so that a wall clock that was set forward is noticed. */
const LONGEST_SLEEP_MS = 250

interface BackingOff<Q> {
  readonly queue: Q
  readonly entries: readonly QueuedMessage[]
}

/**
 * Heads of ordered groups of queues `Q` that are delivered again after a delay. They stay at their positions, held in memory, so that
 * no successor is delivered before them. After a restart they are deliverable at once.
 */
export class HeldHeads<Q> {
  readonly #now: () => number
  readonly #due: (queue: Q, entries: readonly QueuedMessage[]) => void
  #byTime = new Map<number, BackingOff<Q>[]>()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(now: () => number, due: (queue: Q, entries: readonly QueuedMessage[]) => void) {
    this.#now = now
    this.#due = due
  }

  /** @param dueAt In ms since the epoch */
  add(queue: Q, entries: readonly QueuedMessage[], dueAt: number): void {
    const at = Math.ceil(dueAt / STEP_MS) * STEP_MS
    const same = this.#byTime.get(at)
    if (same) same.push({ queue, entries })
    else this.#byTime.set(at, [{ queue, entries }])
    this.#arm()
  }

  #arm(): void {
    if (this.#closed || this.#timer || this.#byTime.size === 0) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#endDue()
      this.#arm()
    }, this.#sleepMs()).unref()
  }

  #sleepMs(): number {
    let next = this.#now() + LONGEST_SLEEP_MS
    for (const at of this.#byTime.keys()) next = Math.min(next, at)
    return Math.max(next - this.#now(), STEP_MS)
  }

  #endDue(): void {
    const now = this.#now()
    const later = new Map<number, BackingOff<Q>[]>()
    const due: BackingOff<Q>[] = []
    for (const [at, heads] of this.#byTime) {
      if (at <= now) due.push(...heads)
      else later.set(at, heads)
    }
    if (due.length === 0) return
    this.#byTime = later
    for (const { queue, entries } of due) this.#due(queue, entries)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }
}
