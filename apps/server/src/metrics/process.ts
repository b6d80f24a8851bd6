import { collectDefaultMetrics, Counter, Registry } from 'prom-client'

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
