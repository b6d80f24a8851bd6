import type { FireOutcome } from '@signalbox/channel-settings'
import type { Registry } from 'prom-client'
import { Counter, Histogram } from 'prom-client'

const OUTCOMES: Readonly<Record<FireOutcome, true>> = { sent: true, duplicate: true, missed: true, failed: true }

/** The series of schedules. */
export class ScheduleMetrics {
  readonly #fires: Counter<'outcome'>
  readonly #lag: Histogram

  constructor(registry: Registry) {
    this.#fires = new Counter({
      name: 'broker_schedule_fires_total',
      help: 'Due times of schedules, by outcome: sent, duplicate (sent before), missed, or failed and tried again.',
      labelNames: ['outcome'],
      registers: [registry],
    })
    for (const outcome of Object.keys(OUTCOMES)) this.#fires.inc({ outcome }, 0)
    this.#lag = new Histogram({
      name: 'broker_schedule_lag_seconds',
      help: 'Time from the due time of a schedule until its message was sent, in seconds.',
      buckets: [0.05, 0.25, 1, 5, 60, 600, 3_600],
      registers: [registry],
    })
  }

  /** @param lagMs The time from the due time until the message was sent, in ms. @default it was not sent now */
  fired(outcome: FireOutcome, count: number, lagMs?: number): void {
    this.#fires.inc({ outcome }, count)
    if (lagMs !== undefined) this.#lag.observe(lagMs / 1000)
  }
}
