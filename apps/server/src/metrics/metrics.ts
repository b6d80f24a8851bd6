import type { BrokerObserver, EngineStats } from '@signalbox/broker-core'
import { Counter, Gauge, Registry } from 'prom-client'

import { AgentMetrics } from '../agents/agent-metrics.ts'
import { ScheduleMetrics } from '../channels/schedule-metrics.ts'
import { commitMetrics, engineMetrics } from '../engine/engine-metrics.ts'
import { RequestDurations } from '../http/request-metrics.ts'
import { LimitMetrics } from '../limits/limit-metrics.ts'
import { WebhookMetrics } from '../webhooks/webhook-metrics.ts'
import { authorizationMetrics, messageMetrics, routingMetrics, schemaMetrics } from './messages.ts'
import type { NodeParts } from './process.ts'
import { eventLoopMetrics, nodeMetrics, processMetrics } from './process.ts'
import type { QueueMetricsOptions, QueueSource } from './queue-metrics.ts'
import type { SeriesDescription } from './series-description.ts'
import { describeSeries } from './series-description.ts'

/**
 * The types of deprecated series. promtool refuses a gauge with the label `quantile` or a name that ends with `_total`,
 * and accepts both for a series without a type.
 */
const DEPRECATED_TYPES =
  /^(# TYPE (?:broker_event_loop_delay_seconds|nodejs_active_(?:handles|requests|resources)_total)) gauge$/gm

/** The server's metrics: their sources, and the page for Prometheus. */
export class Metrics implements Disposable {
  readonly #registry = new Registry()
  readonly #requests = new RequestDurations()
  readonly #eventLoop: Disposable
  #refreshQueues: () => Promise<void> = async () => {}
  #refreshEngine: () => Promise<void> = async () => {}
  readonly #openStreams = new Map<string, () => number>()
  /** For the Broker. */
  readonly observer: BrokerObserver
  /** For the Broker. */
  readonly schemaObserver: BrokerObserver
  /** For a Broker with a routing table. */
  readonly routingObserver: BrokerObserver
  /** For a Broker with a policy. */
  readonly authorizationObserver: BrokerObserver
  readonly schedules: ScheduleMetrics
  /** For the front door. */
  readonly limits: LimitMetrics
  /** Returns the function that records a connector's requests, by outcome and duration. */
  readonly requestsOf: (connector: string) => (outcome: string, seconds: number) => void
  /** Counts events that a connector dropped because a subscriber was too slow. */
  readonly eventsDropped: (count: number) => void
  /** Records a commit of the engine: its number of writes, and its duration. */
  readonly commit: (operations: number, seconds: number) => void

  constructor() {
    this.observer = messageMetrics(this.#registry)
    this.schemaObserver = schemaMetrics(this.#registry)
    this.routingObserver = routingMetrics(this.#registry)
    this.authorizationObserver = authorizationMetrics(this.#registry)
    this.schedules = new ScheduleMetrics(this.#registry)
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

  /** Reads the engine's gauges on each scrape. */
  watchEngine(stats: () => Promise<EngineStats>): void {
    this.#refreshEngine = engineMetrics(this.#registry, stats)
  }

  /** Reads the number of paused queues on each scrape. */
  watchPauses(paused: () => Promise<number>): void {
    const gauge = new Gauge({
      name: 'broker_queues_paused',
      help: 'Queues that are paused, by operators, receivers or channel settings. Each node has the same value.',
      registers: [this.#registry],
      async collect() {
        // It keeps its value while the engine cannot answer.
        await paused().then(
          (count) => gauge.set(count),
          () => {},
        )
      },
    })
  }

  /** Creates the series of single queues. Loaded only if a setting lists queues. */
  async watchQueues(engine: QueueSource, options: QueueMetricsOptions): Promise<void> {
    const { QueueMetrics } = await import('./queue-metrics.ts')
    const queues = new QueueMetrics(this.#registry, engine, options)
    this.#refreshQueues = () => queues.refresh()
  }

  /** Creates the series of the node: its build, and whether it is ready. */
  watchNode(parts: NodeParts): void {
    nodeMetrics(this.#registry, parts)
  }

  /** Creates the series of agents. Call it once, and only if agents are enabled. */
  forAgents(): AgentMetrics {
    return new AgentMetrics(this.#registry)
  }

  /** Creates the series of webhooks. Call it once, and only if webhooks are enabled. */
  forWebhooks(): WebhookMetrics {
    return new WebhookMetrics(this.#registry)
  }

  /** Reads a connector's open streams on each scrape. */
  watchStreams(connector: string, open: () => number): void {
    this.#openStreams.set(connector, open)
  }

  /** Returns the number of open streams, by connector. */
  openStreams(): Readonly<Record<string, number>> {
    return Object.fromEntries(Array.from(this.#openStreams, ([connector, open]) => [connector, open()]))
  }

  /** Returns every series of the page, for the documentation. */
  describe(): SeriesDescription[] {
    const own = [...this.#registry.getMetricsAsArray(), ...processMetrics().getMetricsAsArray()]
    return [...own.map(describeSeries), this.#requests.describe()]
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** Returns the page, in Prometheus' text format. */
  async text(): Promise<string> {
    await Promise.all([this.#refreshEngine(), this.#refreshQueues()])
    const [broker, node] = await Promise.all([this.#registry.metrics(), processMetrics().metrics()])
    return [broker, this.#requests.text(), node].join('\n').replaceAll(DEPRECATED_TYPES, '$1 untyped')
  }

  [Symbol.dispose](): void {
    this.#eventLoop[Symbol.dispose]()
  }
}
