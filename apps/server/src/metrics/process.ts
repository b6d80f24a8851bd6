import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import process from 'node:process'

import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'

interface ProcessMetrics {
  readonly registry: Registry
  readonly unhandledRejections: Counter
}

let metrics: ProcessMetrics | undefined

/** One set for the process, even if several servers run in it. */
function ofProcess(): ProcessMetrics {
  if (metrics) return metrics
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const unhandledRejections = new Counter({
    name: 'broker_unhandled_rejections_total',
    help: 'Rejected promises that no code handled: each is a bug. The log has their stacks.',
    registers: [registry],
  })
  return (metrics = { registry, unhandledRejections })
}

/** Returns the series of the process: the defaults of prom-client, and {@link unhandledRejections}. */
export function processMetrics(): Registry {
  return ofProcess().registry
}

/** Counts unhandled rejections of promises. */
export function unhandledRejections(): Counter {
  return ofProcess().unhandledRejections
}

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

/** The time over which the utilization of the event loop is measured, in ms. */
const WINDOW_MS = 10_000

/**
 * Measures the event loop: percentiles of its delay since the previous scrape, and its utilization
 * in a fixed window. Disposing of the result stops the measurement.
 */
export function eventLoopMetrics(registry: Registry, windowMs = WINDOW_MS): Disposable {
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
  const timer = utilizationMetric(registry, windowMs)
  return {
    [Symbol.dispose]() {
      histogram.disable()
      clearInterval(timer)
    },
  }
}

/**
 * Creates the gauge of the utilization. Windows end by a timer, and not with a scrape: a second
 * scraper would shorten the window of the first. Returns the timer.
 */
function utilizationMetric(registry: Registry, windowMs: number): NodeJS.Timeout {
  let start = performance.eventLoopUtilization()
  let last: number | undefined
  const gauge = new Gauge({
    name: 'broker_event_loop_utilization',
    help: 'Share of the time in which the event loop was busy, 0 to 1, in the last complete window of 10 seconds.',
    registers: [registry],
    collect() {
      // In the first window: since the start.
      gauge.set(last ?? performance.eventLoopUtilization(start).utilization)
    },
  })
  return setInterval(() => {
    const end = performance.eventLoopUtilization()
    last = performance.eventLoopUtilization(end, start).utilization
    start = end
  }, windowMs).unref()
}

export interface NodeParts {
  readonly version: string
  readonly engine: string
  /** Returns the state that `/ready` answers with. */
  readonly state: () => Promise<{ readonly ready: boolean }>
}

/** Creates the series of the build, and of the state that the probe `/ready` reports. */
export function nodeMetrics(registry: Registry, { version, engine, state }: NodeParts): void {
  const registers = [registry]
  const build = new Gauge({
    name: 'broker_build_info',
    help: 'Always 1; the labels are the versions of the server and of Node, and the engine.',
    labelNames: ['version', 'node', 'engine'],
    registers,
  })
  build.set({ version, node: process.versions.node, engine }, 1)
  const ready = new Gauge({
    name: 'broker_ready',
    help: '1 while the node accepts calls and every check of /ready passes, else 0.',
    registers,
    async collect() {
      ready.set((await state()).ready ? 1 : 0)
    },
  })
}
