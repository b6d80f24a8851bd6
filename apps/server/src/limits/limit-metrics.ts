import type { AdmissionControl } from '@signalbox/http-kit'
import type { Registry } from 'prom-client'
import { Counter, Gauge } from 'prom-client'

/** The use of the limits, and the refusals by each. Labels are names of limits, never of callers. */
export class LimitMetrics {
  readonly #refusals: Counter<'limit'>
  #admission: AdmissionControl | undefined

  constructor(registry: Registry) {
    this.#refusals = new Counter({
      name: 'broker_limit_refusals_total',
      help: 'Requests and streams that a limit refused, by limit.',
      labelNames: ['limit'],
      registers: [registry],
    })
    const admission = (): AdmissionControl | undefined => this.#admission
    const use = new Gauge({
      name: 'broker_limit_use',
      help: 'Use of a limit of the process, by all callers together.',
      labelNames: ['limit'],
      registers: [registry],
      collect() {
        const held = admission()?.use
        if (held === undefined) return
        use.set({ limit: 'process_requests' }, held.requests)
        use.set({ limit: 'process_body_bytes' }, held.bodyBytes)
        use.set({ limit: 'process_streams' }, held.streams)
        use.set({ limit: 'process_unread_bytes' }, held.unreadBytes)
      },
    })
    const most = new Gauge({
      name: 'broker_limit_max',
      help: 'The limits of the process; 0 means no limit.',
      labelNames: ['limit'],
      registers: [registry],
      collect() {
        const limits = admission()?.limits.process
        if (limits === undefined) return
        most.set({ limit: 'process_requests' }, limits.requestsInFlight)
        most.set({ limit: 'process_body_bytes' }, limits.bodyBytes)
        most.set({ limit: 'process_streams' }, limits.streams)
        most.set({ limit: 'process_unread_bytes' }, limits.unreadBytes)
      },
    })
    const memory: Gauge = new Gauge({
      name: 'broker_memory_exceeded',
      help: '1 while memory is above LIMITS_PROCESS_MEMORY_PERCENT and large bodies and new streams are refused, else 0.',
      registers: [registry],
      collect: () => memory.set(admission()?.use.memoryExceeded === true ? 1 : 0),
    })
  }

  /** Reads the use and the limits on each scrape. */
  watch(admission: AdmissionControl): void {
    this.#admission = admission
  }

  /** Counts a refusal by a limit. */
  refused(limit: string): void {
    this.#refusals.inc({ limit })
  }
}
