import { collectDefaultMetrics, Registry } from 'prom-client'

let registry: Registry | undefined

/** The series of the process as prom-client names them. One set for each process, however many servers run in it. */
export function processMetrics(): Registry {
  if (!registry) {
    registry = new Registry()
    collectDefaultMetrics({ register: registry })
  }
  return registry
}
