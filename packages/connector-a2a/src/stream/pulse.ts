import type { ResolvedStreamLimits } from './limits.ts'

/** What looks at the clock now and then. */
export interface Pulsed {
  /** @param now As `performance.now()` has it */
  pulse(now: number): void
  /** Its pulse has thrown this: it gets no more of them. */
  crash(error: unknown): void
}

const LONGEST_MS = 250
const SHORTEST_MS = 5

/** How many times a duration is looked at within its length. */
const LOOKS = 10

const pulses = new Map<number, Pulse>()

/** One timer for all streams that look at the clock equally often, while there are any. */
export class Pulse {
  readonly #intervalMs: number
  readonly #members = new Set<Pulsed>()
  #timer: NodeJS.Timeout | undefined

  private constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** The pulse that is fast enough for these limits, and for an idle time where there is one. */
  static for(limits: ResolvedStreamLimits, idleMs = 0): Pulse {
    const { creditMs, heartbeatMs, silenceMs, noCreditMs, slowConsumerMs } = limits
    const shortest = Math.min(creditMs, heartbeatMs, silenceMs, noCreditMs, slowConsumerMs, idleMs || Infinity)
    const intervalMs = Math.min(Math.max(Math.floor(shortest / LOOKS), SHORTEST_MS), LONGEST_MS)
    const known = pulses.get(intervalMs)
    if (known !== undefined) return known
    const pulse = new Pulse(intervalMs)
    pulses.set(intervalMs, pulse)
    return pulse
  }

  add(member: Pulsed): void {
    this.#members.add(member)
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => {
      const now = performance.now()
      for (const one of this.#members) this.#look(one, now)
    }, this.#intervalMs)
    this.#timer.unref()
  }

  /** A timer's failure has nobody else to catch it. */
  #look(member: Pulsed, now: number): void {
    try {
      member.pulse(now)
    } catch (error) {
      this.delete(member)
      member.crash(error)
    }
  }

  delete(member: Pulsed): void {
    this.#members.delete(member)
    if (this.#members.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** A first moment within one period, so that streams opened together do not all act together ever after. */
export function firstMoment(now: number, periodMs: number): number {
  return now + periodMs * (0.5 + Math.random() / 2)
}
