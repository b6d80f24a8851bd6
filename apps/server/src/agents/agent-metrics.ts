import type { AgentCallTotals } from '@signalbox/management-api'
import type { Registry } from 'prom-client'
import { Counter, Gauge, Histogram } from 'prom-client'

import type { RunSource } from './run-metrics.ts'
import { NO_RUNS, registerRunMetrics } from './run-metrics.ts'

/** The end of a request to an agent at the gateway. */
export interface AgentRequestEnd {
  readonly agentId: string
  /** One of the methods in the specification ("A2A endpoints"), or `unknown`. */
  readonly method: string
  readonly status: 'success' | 'error'
  /** After an error: one of the gateway's codes, or `agent`. */
  readonly errorCode: string | undefined
  /** The time until the answer was written, or until the end of a stream. */
  readonly seconds: number
  /** The time until the answer began. */
  readonly firstByteSeconds: number
}

/** The values that the metrics read on a scrape, or at the end of a request. */
export interface AgentSource {
  /** Returns true if the agent is registered now. */
  isRegistered(agentId: string): boolean
  /** Returns the requests under way of each agent that this node serves. */
  inFlight(): Iterable<readonly [agentId: string, count: number]>
  /** Returns the requests under way of each instance of an agent, by instance_id. */
  inFlightByInstance(agentId: string): ReadonlyMap<string, number>
  openStreams(): number
  /** The calls whose answers are kept, and the inboxes. */
  readonly runs: RunSource
}

const UNKNOWN = 'unknown'
const OPERATIONS = ['register', 'deregister', 'heartbeat', 'expire', 'park'] as const

/** From an agent that answers from memory to one that needs an hour. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600]

/** The counts of one agent. Plain numbers, which are copied into counters on a scrape. */
interface AgentSeries {
  /** By method and status, separated by a blank. */
  readonly requests: Map<string, number>
  readonly errors: Map<string, number>
  readonly totals: { calls: number; errors: number; seconds: number }
  readonly duration: Histogram.Internal<'agent_id'>
  readonly firstByte: Histogram.Internal<'agent_id'>
}

/**
 * The series of the gateway and the registry. Their number is
 * bounded by the number of registered agents: all others count as `unknown`, and removing an agent
 * removes its series.
 */
export class AgentMetrics {
  readonly #series = new Map<string, AgentSeries>()
  readonly #operations: Counter<'op' | 'status'>
  readonly #duration: Histogram<'agent_id'>
  readonly #firstByte: Histogram<'agent_id'>
  #source: AgentSource = {
    isRegistered: () => false,
    inFlight: () => [],
    inFlightByInstance: () => new Map(),
    openStreams: () => 0,
    runs: NO_RUNS,
  }

  constructor(registry: Registry) {
    const registers = [registry]
    const series = this.#series
    const source = () => this.#source
    registry.registerMetric(
      new Counter({
        name: 'broker_a2a_requests_total',
        help: 'Requests to agents at the gateway, by agent, method and status.',
        labelNames: ['agent_id', 'method', 'status'],
        registers: [],
        collect() {
          this.reset()
          for (const [agent_id, { requests }] of series) {
            for (const [key, count] of requests) {
              const [method = '', status = ''] = key.split(' ')
              this.inc({ agent_id, method, status }, count)
            }
          }
        },
      }),
    )
    registry.registerMetric(
      new Counter({
        name: 'broker_a2a_errors_total',
        help: "Requests to agents that failed, by the gateway's error code; agent is an error of the agent itself.",
        labelNames: ['agent_id', 'error_code'],
        registers: [],
        collect() {
          this.reset()
          for (const [agent_id, { errors }] of series) {
            for (const [error_code, count] of errors) this.inc({ agent_id, error_code }, count)
          }
        },
      }),
    )
    this.#duration = new Histogram({
      name: 'broker_a2a_request_duration_seconds',
      help: 'Time from the arrival of a request to an agent to its answer, or to the end of its stream.',
      labelNames: ['agent_id'],
      buckets: BUCKETS,
      registers,
    })
    this.#firstByte = new Histogram({
      name: 'broker_a2a_first_byte_seconds',
      help: 'Time from the arrival of a request to an agent to the beginning of its answer.',
      labelNames: ['agent_id'],
      buckets: BUCKETS,
      registers,
    })
    registry.registerMetric(
      new Gauge({
        name: 'broker_a2a_requests_in_flight',
        help: 'Requests and streams of an agent in progress, on the node that serves it.',
        labelNames: ['agent_id'],
        registers: [],
        collect() {
          this.reset()
          for (const [agent_id, count] of source().inFlight()) this.set({ agent_id }, count)
        },
      }),
    )
    registry.registerMetric(
      new Gauge({
        name: 'broker_a2a_sse_streams_active',
        help: 'Open streams of agents to callers.',
        registers: [],
        collect() {
          this.set(source().openStreams())
        },
      }),
    )
    registerRunMetrics(registry, () => source().runs)
    this.#operations = new Counter({
      name: 'broker_a2a_registry_operations_total',
      help: 'Operations of the agent registry, by status.',
      labelNames: ['op', 'status'],
      registers,
    })
    for (const op of OPERATIONS) for (const status of ['success', 'error']) this.#operations.inc({ op, status }, 0)
  }

  watch(source: AgentSource): void {
    this.#source = source
  }

  requestEnded({ agentId, method, status, errorCode, seconds, firstByteSeconds }: AgentRequestEnd): void {
    const { requests, errors, totals, duration, firstByte } = this.#of(agentId)
    count(requests, `${method} ${status}`)
    if (errorCode !== undefined) count(errors, errorCode)
    totals.calls++
    totals.seconds += seconds
    if (status === 'error') totals.errors++
    duration.observe(seconds)
    firstByte.observe(firstByteSeconds)
  }

  registryOperation(op: (typeof OPERATIONS)[number], status: 'success' | 'error'): void {
    this.#operations.inc({ op, status })
  }

  /** Returns the requests under way of each agent that this node serves. */
  inFlight(): ReadonlyMap<string, number> {
    return new Map(this.#source.inFlight())
  }

  /** Returns the requests under way of each instance of an agent that this node serves, by instance_id. */
  inFlightByInstance(agentId: string): ReadonlyMap<string, number> {
    return this.#source.inFlightByInstance(agentId)
  }

  /** Returns the requests to each agent since the start. Agents that are not registered count together. */
  *totals(): Iterable<readonly [agentId: string, totals: AgentCallTotals]> {
    for (const [agentId, { totals }] of this.#series) yield [agentId, totals]
  }

  /** Removes the series of an agent. */
  forget(agentId: string): void {
    if (!this.#series.delete(agentId)) return
    this.#duration.remove(agentId)
    this.#firstByte.remove(agentId)
  }

  #of(agentId: string): AgentSeries {
    const known = this.#series.get(agentId)
    // A request that ends after its agent was removed must not create the agent's series again.
    if (known !== undefined) return known
    const label = this.#source.isRegistered(agentId) ? agentId : UNKNOWN
    let series = this.#series.get(label)
    if (series === undefined) {
      series = {
        requests: new Map(),
        errors: new Map(),
        totals: { calls: 0, errors: 0, seconds: 0 },
        duration: this.#duration.labels(label),
        firstByte: this.#firstByte.labels(label),
      }
      this.#series.set(label, series)
    }
    return series
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}
