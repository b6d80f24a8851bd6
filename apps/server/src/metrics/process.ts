import { monitorEventLoopDelay } from 'node:perf_hooks'
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
