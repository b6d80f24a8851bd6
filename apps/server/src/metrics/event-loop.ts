import { monitorEventLoopDelay } from 'node:perf_hooks'

import type { Registry } from 'prom-client'
import { Gauge } from 'prom-client'

const NANOSECONDS = 1e9
const RESOLUTION_MS = 10

/**
 * Converts a value of the histogram, which includes the timer's own interval, to the delay in
 * seconds.
 */
function delay(nanoseconds: number): number {
  return Math.max(0, nanoseconds / NANOSECONDS - RESOLUTION_MS / 1000)
}

/**
 * Measures the delay of the event loop: quantiles since the previous scrape. Disposing of the
 * result stops the measurement.
 */
export function eventLoopMetrics(registry: Registry): Disposable {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  const gauge = new Gauge({
    name: 'broker_event_loop_delay_seconds',
    help: 'Delay of the event loop since the previous scrape, by quantile; 1 is the maximum.',
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
