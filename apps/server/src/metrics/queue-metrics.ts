import type { ChannelState, Engine } from '@signalbox/broker-core'
import { isReservedChannel } from '@signalbox/broker-core'
import type { Registry } from 'prom-client'
import { Gauge } from 'prom-client'

import type { Logger } from '../logging/logger.ts'

/** The maximum number of queues with separate series. */
export const MAX_LISTED_QUEUES = 200
/** The time for which the counts are reused, in ms: there may be several scrapers. */
const SHOWN_MS = 5_000
/** The longest wait of a scrape for new counts, in ms; after it the page has the previous ones. */
const WAIT_MS = 2_000
/** The number of queues that are read at the same time. */
const PARALLEL = 16

/** The part of an engine that the series are read from. */
export interface QueueSource {
  readonly queues: Pick<Engine['queues'], 'oldestWaiting'>
  readonly channels: Pick<Engine['channels'], 'names' | 'states'>
}

export interface QueueMetricsOptions {
  /** Returns whether a queue has a separate series (`METRICS_QUEUES`). */
  readonly isListed: (queue: string) => boolean
  readonly log: Pick<Logger, 'warn'>
  /** @default 5000 */
  readonly shownMs?: number
}

interface ListedQueue {
  readonly state: ChannelState
  /** When its oldest waiting message was sent, in ms since the epoch. */
  readonly oldest: number | undefined
}

/** The gauges of single queues, whose names are labels. */
export class QueueMetrics {
  readonly #depth: Gauge<'queue' | 'state'>
  readonly #age: Gauge<'queue'>
  readonly #omitted: Gauge
  readonly #engine: QueueSource
  readonly #options: QueueMetricsOptions
  #listed: readonly ListedQueue[] = []
  #readAt = -Infinity
  #pass: Promise<void> | undefined
  #warned = false

  constructor(registry: Registry, engine: QueueSource, options: QueueMetricsOptions) {
    this.#engine = engine
    this.#options = options
    const registers = [registry]
    this.#depth = new Gauge({
      name: 'broker_queue_depth',
      help: 'Messages in a queue of METRICS_QUEUES: waiting (deliverable now), delayed, in_flight (leased).',
      labelNames: ['queue', 'state'],
      registers,
    })
    this.#age = new Gauge({
      name: 'broker_queue_oldest_message_age_seconds',
      help: 'Time since the oldest waiting message of a queue of METRICS_QUEUES was sent; 0 if no message waits.',
      labelNames: ['queue'],
      registers,
    })
    this.#omitted = new Gauge({
      name: 'broker_queues_omitted',
      help: `Queues of METRICS_QUEUES beyond the first ${MAX_LISTED_QUEUES}, which have no series.`,
      registers,
    })
  }

  /** Sets the gauges. If the engine fails or is slow, the depths are the previous ones, and the ages continue. */
  async refresh(): Promise<void> {
    const { shownMs = SHOWN_MS } = this.#options
    if (performance.now() - this.#readAt >= shownMs) await this.#read()
    this.#depth.reset()
    this.#age.reset()
    const now = Date.now()
    for (const { state, oldest } of this.#listed) {
      const { name: queue, queue: counts } = state
      if (counts === undefined) continue
      this.#depth.set({ queue, state: 'waiting' }, counts.waiting)
      this.#depth.set({ queue, state: 'delayed' }, counts.delayed)
      this.#depth.set({ queue, state: 'in_flight' }, counts.inFlight)
      this.#age.set({ queue }, oldest === undefined ? 0 : Math.max(0, now - oldest) / 1000)
    }
  }

  /** Waits for the pass that runs, or for a new one. Concurrent scrapes share it. */
  async #read(): Promise<void> {
    this.#pass ??= this.#readAll()
      .catch(() => {})
      .finally(() => (this.#pass = undefined))
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, WAIT_MS)))
    await Promise.race([this.#pass, late])
    clearTimeout(timer)
  }

  async #readAll(): Promise<void> {
    const { isListed, log } = this.#options
    const engine = this.#engine
    const names = await engine.channels.names('queues')
    const wanted = names.filter(({ name }) => !isReservedChannel(name) && isListed(name))
    const left = wanted.slice(0, MAX_LISTED_QUEUES).toReversed()
    const omitted = wanted.length - left.length
    const listed: ListedQueue[] = []
    const work = async (): Promise<void> => {
      for (let next = left.pop(); next; next = left.pop()) {
        const { name } = next
        const [[state], oldest] = await Promise.all([engine.channels.states([next]), engine.queues.oldestWaiting(name)])
        if (state) listed.push({ state, oldest })
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, work))
    this.#listed = listed
    this.#readAt = performance.now()
    this.#omitted.set(omitted)
    if (omitted > 0 && !this.#warned) {
      log.warn({ omitted }, `METRICS_QUEUES matches more than ${MAX_LISTED_QUEUES} queues: the others have no series`)
    }
    this.#warned = omitted > 0
  }
}
