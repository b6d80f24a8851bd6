import type { BrokerObserver, EngineStats } from '@signalbox/broker-core'
import { Counter, Gauge, Registry } from 'prom-client'

import { AgentMetrics } from '../agents/agent-metrics.ts'
import { commitMetrics, engineMetrics } from '../engine/engine-metrics.ts'
import { RequestDurations } from '../http/request-metrics.ts'
import { LimitMetrics } from '../limits/limit-metrics.ts'
import { routingMetrics } from '../routing/routing-metrics.ts'
import { authorizationMetrics } from '../security/authorization-metrics.ts'
import { eventLoopMetrics } from './event-loop.ts'
import { messageMetrics } from './messages.ts'
import { processMetrics } from './process.ts'
import type { SeriesDescription } from './series-description.ts'
import { describeSeries } from './series-description.ts'

/** The server's metrics: what feeds them, and the page that Prometheus reads. */
export class Metrics implements Disposable {
  readonly #registry = new Registry()
  readonly #requests = new RequestDurations()
  readonly #eventLoop: Disposable
  #refreshEngine: () => Promise<void> = async () => {}
  readonly #openStreams = new Map<string, () => number>()
  /** For the Broker. */
  readonly observer: BrokerObserver
  /** For the Broker, where it has a routing table. */
  readonly routingObserver: BrokerObserver
  /** For the Broker, where a policy decides. */
  readonly authorizationObserver: BrokerObserver
  /** For the front door. */
  readonly limits: LimitMetrics
  /** For a connector by name: how a request ended, and how long it took. */
  readonly requestsOf: (connector: string) => (outcome: string, seconds: number) => void
  /** For a connector: so many events did not reach a subscriber that was too slow. */
  readonly eventsDropped: (count: number) => void
  /** For the engine: how many writes shared a commit, and how long it took. */
  readonly commit: (operations: number, seconds: number) => void

  constructor() {
    this.observer = messageMetrics(this.#registry)
    this.routingObserver = routingMetrics(this.#registry)
    this.authorizationObserver = authorizationMetrics(this.#registry)
    this.limits = new LimitMetrics(this.#registry)
    this.requestsOf = (connector) => this.#requests.of(connector)
    this.commit = commitMetrics(this.#registry)
    this.#eventLoop = eventLoopMetrics(this.#registry)
    const dropped = new Counter({
      name: 'broker_events_dropped_total',
      help: 'Events that subscribers lost because they were too slow.',
      registers: [this.#registry],
    })
    this.eventsDropped = (count) => dropped.inc(count)
    const openStreams = this.#openStreams
    const streams = new Gauge({
      name: 'broker_sse_streams_active',
      help: 'Open streams of server-sent events, by connector.',
      labelNames: ['connector'],
      registers: [this.#registry],
      collect() {
        for (const [connector, open] of openStreams) streams.set({ connector }, open())
      },
    })
  }

  /** Asks the engine for its gauges when somebody scrapes. */
  watchEngine(stats: () => Promise<EngineStats>): void {
    this.#refreshEngine = engineMetrics(this.#registry, stats)
  }

  /** The series of agents, which are there only where agents are. Once. */
  forAgents(): AgentMetrics {
    return new AgentMetrics(this.#registry)
  }

  /** Counts a connector's open streams when somebody scrapes. */
  watchStreams(connector: string, open: () => number): void {
    this.#openStreams.set(connector, open)
  }

  /** Streams that are open now, by connector. */
  openStreams(): Readonly<Record<string, number>> {
    return Object.fromEntries(Array.from(this.#openStreams, ([connector, open]) => [connector, open()]))
  }

  /** Every series that the page can show, for the documentation. */
  describe(): SeriesDescription[] {
    const own = [...this.#registry.getMetricsAsArray(), ...processMetrics().getMetricsAsArray()]
    return [...own.map(describeSeries), this.#requests.describe()]
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** The page, in Prometheus' text format. */
  async text(): Promise<string> {
    await this.#refreshEngine()
    const [broker, node] = await Promise.all([this.#registry.metrics(), processMetrics().metrics()])
    return [broker, this.#requests.text(), node].join('\n')
  }

  [Symbol.dispose](): void {
    this.#eventLoop[Symbol.dispose]()
  }
}
