import type { Registry } from 'prom-client'
import { Histogram } from 'prom-client'

/** From a durable send on a fast disk to a command that waits out its hour. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 600, 3600]

/** Times the requests of the connectors. The returned function is for one connector. */
export function requestMetrics(registry: Registry): (connector: string) => (outcome: string, seconds: number) => void {
  const duration = new Histogram({
    name: 'broker_request_duration_seconds',
    help: 'From the arrival of a request to its answer, by connector and outcome. Long polls and commands count their waits.',
    labelNames: ['connector', 'outcome'],
    buckets: BUCKETS,
    registers: [registry],
  })
  return (connector) => {
    const children = new Map<string, Histogram.Internal<'connector' | 'outcome'>>()
    return (outcome, seconds) => {
      let child = children.get(outcome)
      if (!child) children.set(outcome, (child = duration.labels(connector, outcome)))
      child.observe(seconds)
    }
  }
}
