import { unavailable } from '@signalbox/broker-core/engine'
import { performance } from 'node:perf_hooks'

import type { KeyedRecords } from './keyed-records.ts'
import type { NatsEngineProblem } from './options.ts'
import type { Subjects } from './subjects.ts'

/** Clocks that differ by more are warned of, in milliseconds. */
const WARN_MS = 1_000
/** A node whose clock differs by more is not ready, and takes no message for expired, in milliseconds. */
const MAX_SKEW_MS = 5_000
/** How often the node's own clock is looked at, and how often the servers' time is asked for, in milliseconds. */
const LOOK_MS = 5_000
const MEASURE_MS = 60_000
/** While the clock is wrong probes have the servers asked at most so often, in milliseconds. */
const ASK_AGAIN_MS = 1_000

/**
 * The clock of this node beside that of the servers. Due times and expiry are absolute, and every node acts on them: one
 * whose clock is a day ahead would delete what all others still have to deliver.
 */
export class ServerClock {
  readonly #keyedRecords: KeyedRecords
  readonly #key: string
  readonly #onProblem: (problem: NatsEngineProblem) => void
  /** The servers' time less that of the timer that no setting of the clock moves; undefined until it was asked for. */
  #serversAhead: number | undefined
  #measuredAt = -Infinity
  #measuring: Promise<void> | undefined
  #reported: 'right' | 'off' | 'skewed' = 'right'
  #timer: NodeJS.Timeout | undefined

  private constructor(keyedRecords: KeyedRecords, subjects: Subjects, onProblem: (problem: NatsEngineProblem) => void) {
    this.#keyedRecords = keyedRecords
    this.#key = subjects.keyedRecord('clock')
    this.#onProblem = onProblem
  }

  static async start(
    keyedRecords: KeyedRecords,
    subjects: Subjects,
    onProblem: (problem: NatsEngineProblem) => void,
  ): Promise<ServerClock> {
    const clock = new ServerClock(keyedRecords, subjects, onProblem)
    await clock.measure()
    clock.#timer = setInterval(() => {
      const isDue = performance.now() - clock.#measuredAt >= MEASURE_MS
      if (isDue || clock.#state !== clock.#reported) clock.#measureInBackground()
    }, LOOK_MS)
    clock.#timer.unref()
    return clock
  }

  #measureInBackground(): void {
    // Asked again the next time; until then the last answer holds.
    this.measure().catch(() => {})
  }

  /** Asks the servers for their time. @throws BrokerError ENGINE_UNAVAILABLE */
  measure(): Promise<void> {
    this.#measuring ??= this.#measure().finally(() => (this.#measuring = undefined))
    return this.#measuring
  }

  /** A record carries the time it was stored: with 2.9 nothing else that an ordinary user may ask does. */
  async #measure(): Promise<void> {
    const [before, startedAt] = [Date.now(), performance.now()]
    await this.#keyedRecords.put(this.#key, '')
    const record = await this.#keyedRecords.get(this.#key)
    if (!record) return
    const [after, endedAt] = [Date.now(), performance.now()]
    // Set in between: the next look finds it.
    if (Math.abs(after - before - (endedAt - startedAt)) > WARN_MS) return
    // However long the answer took, a time between question and answer is no difference.
    const difference = record.timestamp - Math.min(Math.max(record.timestamp, before), after)
    this.#serversAhead = difference + after - endedAt
    this.#measuredAt = endedAt
    this.#report()
  }

  /** How far this node's clock is ahead of the servers', in milliseconds; below 0 when it is behind. */
  get skewMs(): number {
    return this.#serversAhead === undefined ? 0 : Date.now() - performance.now() - this.#serversAhead
  }

  /** Whether it differs so much that nothing may be taken for expired. */
  get isSkewed(): boolean {
    return Math.abs(this.skewMs) > MAX_SKEW_MS
  }

  /** The time by which messages are due and expire: while the clocks disagree nothing is before its time by either. */
  now(): number {
    const now = Date.now()
    return this.isSkewed ? Math.min(now, now - this.skewMs) : now
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE while times that are given to messages would be wrong */
  assertRight(): void {
    if (this.isSkewed) throw unavailable(`${this.#text()}; messages with a delay or an expiry are not taken`)
  }

  /** For the probes: a node with a wrong clock lives, and is not ready. */
  async check(): Promise<{ readonly name: 'clock'; readonly ok: boolean; readonly detail: string }> {
    // It may have been set right, or a machine that slept may have woken. Probes are many, so not for each.
    const isDue = this.isSkewed && performance.now() - this.#measuredAt >= ASK_AGAIN_MS
    if (isDue || this.#state !== this.#reported) await this.measure().catch(() => {})
    return { name: 'clock', ok: !this.isSkewed, detail: this.#text() }
  }

  #text(): string {
    const skew = this.skewMs
    if (Math.abs(skew) <= WARN_MS) return 'agrees with the NATS servers'
    const [seconds, side] = [Math.round(Math.abs(skew) / 1_000), skew > 0 ? 'ahead of' : 'behind']
    return `the clock of this node is ${seconds} s ${side} that of the NATS servers`
  }

  get #state(): 'right' | 'off' | 'skewed' {
    if (this.isSkewed) return 'skewed'
    return Math.abs(this.skewMs) > WARN_MS ? 'off' : 'right'
  }

  #report(): void {
    const state = this.#state
    if (state === this.#reported) return
    this.#reported = state
    if (state === 'right') {
      this.#onProblem({ kind: 'healed', message: 'the clock of this node agrees with the NATS servers again' })
      return
    }
    const consequence =
      state === 'off'
        ? 'due times and expiry are off by as much'
        : 'the node is not ready and removes no expired messages until they agree'
    this.#onProblem({ kind: 'warning', message: `${this.#text()}: ${consequence}; set both by NTP` })
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
