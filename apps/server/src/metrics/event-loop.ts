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

/** The percentiles, with the values of the label `quantile` of the deprecated series. */
const PERCENTILES = [
  { percentile: 50, quantile: '0.5' },
  { percentile: 99, quantile: '0.99' },
  { percentile: 100, quantile: '1' },
] as const

/**
 * Measures the delay of the event loop: percentiles since the previous scrape. Disposing of the
 * result stops the measurement.
 */
export function eventLoopMetrics(registry: Registry): Disposable {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  const registers = [registry]
  const lag = new Gauge({
    name: 'broker_event_loop_lag_seconds',
    help: 'Delay of the event loop since the previous scrape, by percentile; 100 is the maximum.',
    labelNames: ['percentile'],
    registers,
    collect() {
      for (const { percentile, quantile } of PERCENTILES) {
        const seconds = histogram.count === 0 ? 0 : delay(histogram.percentile(percentile))
        lag.set({ percentile: String(percentile) }, seconds)
        deprecated.set({ quantile }, seconds)
      }
      histogram.reset()
    },
  })
  // Registered second: the registry reads it after the values were set.
  const deprecated = new Gauge({
    name: 'broker_event_loop_delay_seconds',
    help: 'Deprecated, until the next minor version: broker_event_loop_lag_seconds has the same values.',
    labelNames: ['quantile'],
    registers,
  })
  return { [Symbol.dispose]: () => void histogram.disable() }
}
