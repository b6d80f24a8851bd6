import type { ResolvedStreamLimits } from './limits.ts'

/** A stream that a {@link StreamTimer} ticks. */
export interface Timed {
  /** @param now The value of `performance.now()` */
  tick(now: number): void
  /** Called with the error that its tick has thrown. It gets no more ticks. */
  crash(error: unknown): void
}

const LONGEST_MS = 250
const SHORTEST_MS = 5

/** The number of ticks within the shortest duration. */
const TICKS = 10
const timers = new Map<number, StreamTimer>()

/** One timer for all streams with the same interval. It runs only while it has streams. */
export class StreamTimer {
  readonly #intervalMs: number
  readonly #members = new Set<Timed>()
  #timer: NodeJS.Timeout | undefined

  private constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** Returns the timer whose interval suits these limits, and the idle time-out if there is one. */
  static for(limits: ResolvedStreamLimits, idleMs = 0): StreamTimer {
    const { creditMs, heartbeatMs, silenceMs, noCreditMs, slowConsumerMs } = limits
    const shortest = Math.min(creditMs, heartbeatMs, silenceMs, noCreditMs, slowConsumerMs, idleMs || Infinity)
    const intervalMs = Math.min(Math.max(Math.floor(shortest / TICKS), SHORTEST_MS), LONGEST_MS)
    const known = timers.get(intervalMs)
    if (known !== undefined) return known
    const timer = new StreamTimer(intervalMs)
    timers.set(intervalMs, timer)
    return timer
  }

  add(member: Timed): void {
    this.#members.add(member)
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => {
      const now = performance.now()
      for (const one of this.#members) this.#tick(one, now)
    }, this.#intervalMs)
    this.#timer.unref()
  }

  /** Catches the error of a tick: a timer has no other handler. */
  #tick(member: Timed, now: number): void {
    try {
      member.tick(now)
    } catch (error) {
      this.delete(member)
      member.crash(error)
    }
  }

  delete(member: Timed): void {
    this.#members.delete(member)
    if (this.#members.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** Returns a first time within one period, so that streams that open together do not act together. */
export function firstMoment(now: number, periodMs: number): number {
  return now + periodMs * (0.5 + Math.random() / 2)
}
