import { monitorEventLoopDelay } from 'node:perf_hooks'

import type { Registry } from 'prom-client'
import { Gauge } from 'prom-client'

const NANOSECONDS = 1e9
const RESOLUTION_MS = 10

/** The histogram sees the timer's own interval too; what is beyond it is delay. */
function delay(nanoseconds: number): number {
  return Math.max(0, nanoseconds / NANOSECONDS - RESOLUTION_MS / 1000)
}

/**
 * How late the event loop runs its timers: quantiles since the scrape before. Disposing of the result stops the
 * measurement.
 */
export function eventLoopMetrics(registry: Registry): Disposable {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  const gauge = new Gauge({
    name: 'broker_event_loop_delay_seconds',
    help: 'Delay of the event loop since the scrape before, by quantile; 1 is the longest.',
    labelNames: ['quantile'],
    registers: [registry],
    collect() {
      gauge.set({ quantile: '0.5' }, delay(histogram.percentile(50)))
      gauge.set({ quantile: '0.99' }, delay(histogram.percentile(99)))
      gauge.set({ quantile: '1' }, histogram.count === 0 ? 0 : delay(histogram.max))
      histogram.reset()
    },
  })
  return { [Symbol.dispose]: () => void histogram.disable() }
}
