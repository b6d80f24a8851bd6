import { monitorEventLoopDelay } from 'node:perf_hooks'
import process from 'node:process'
import v8 from 'node:v8'

import { CHANNEL_TYPES } from '@signalbox/broker-core'
import type { BrokerObserver, ChannelName, EngineStats } from '@signalbox/broker-core'

import type { Statistics } from '../statistics/statistics.ts'
import { AgentHistories, ChannelHistories } from './histories.ts'
import type { ChannelHistory, ReadAgentCalls, ReadStates } from './histories.ts'
import { ActiveChannels, PacedReading } from './sampling.ts'
import { SeriesTable, STEPS_PER_MINUTE } from './time-series.ts'
import type { SeriesRange } from './time-series.ts'

/** The most channels, and the most agents, with a separate history. */
export const MAX_TRACKED = 50

/** The default length of a step, in ms. */
const STEP_MS = 5_000
const LOOP_RESOLUTION_MS = 20
const NANOSECONDS = 1e9

/** The sources of the numbers, read once a step. */
interface HistorySources {
  readonly stats: () => Promise<EngineStats>
  readonly states: ReadStates
  readonly agentCalls: ReadAgentCalls
  /** Returns the open streams of server-sent events, by connector. */
  readonly streams: () => Readonly<Record<string, number>>
  /** Called at the end of each step, with its number. */
  readonly stepEnded: (step: number) => void
}

/**
 * Numbers of this node for plots: an hour in steps of 5 s, and a day in minutes. The messaging path
 * only counts; everything else is read once a step. The memory is bounded: some 5 MiB if all
 * {@link MAX_TRACKED} channels and agents are in use.
 */
export class History implements Disposable {
  readonly stepMs: number
  /** Counts the traffic of channels. For the Broker. */
  readonly observer: BrokerObserver
  readonly #statistics: Statistics
  readonly #traffic = new ActiveChannels()
  #series: AllSeries | undefined
  #sources: HistorySources | undefined
  #stats: PacedReading<EngineStats> | undefined
  #loop: ReturnType<typeof monitorEventLoopDelay> | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false
  /** The number of the last step that has values. */
  #lastStep = 0

  constructor(statistics: Statistics, stepMs = STEP_MS) {
    this.#statistics = statistics
    this.stepMs = stepMs
    this.observer = this.#traffic
  }

  /** Starts reading the sources. */
  start(sources: HistorySources): void {
    if (this.#closed) return
    this.#sources = sources
    this.#stats = new PacedReading(sources.stats)
    this.#loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
    this.#loop.enable()
    this.#schedule()
  }

  /** Steps begin at multiples of their length, so the steps of all nodes are the same. */
  #schedule(): void {
    if (this.#closed) return
    const wait = this.stepMs - (Date.now() % this.stepMs)
    this.#timer = setTimeout(() => {
      void this.#sample(Math.round(Date.now() / this.stepMs) - 1).finally(() => this.#schedule())
    }, wait)
    this.#timer.unref()
  }

  /** Sets the values of the step that has just ended. */
  async #sample(step: number): Promise<void> {
    const sources = this.#sources
    const statistics = this.#statistics
    sources?.stepEnded(step)
    // The clock was set back by more than a minute: the values so far are in the future.
    if (step < this.#lastStep - STEPS_PER_MINUTE) this.#series = undefined
    else if (step <= this.#lastStep) return
    if (sources === undefined) return
    const waitMs = this.stepMs / 4
    const series = (this.#series ??= allSeries(sources.states, step))
    for (const type of CHANNEL_TYPES) {
      const { messagesIn, messagesOut } = statistics.ofType(type)
      series.counts.setTotal(`${type} in`, step, messagesIn)
      series.counts.setTotal(`${type} out`, step, messagesOut)
    }
    for (const [code, count] of statistics.errorsByCode) series.errors.setTotal(code, step, count)
    for (const [connector, open] of Object.entries(sources.streams())) series.streams.set(connector, step, open)
    series.peaks.set('loop', step, this.#loopDelay())
    series.gauges.set('memory', step, process.memoryUsage.rss())
    series.gauges.set('heap', step, v8.getHeapStatistics().used_heap_size)
    series.agents.set(step, sources.agentCalls())
    const [stats] = await Promise.all([
      this.#stats?.value(waitMs),
      series.channels.set(step, this.#traffic.take(), waitMs),
    ])
    series.gauges.set('waiting', step, stats?.queues.waiting ?? Number.NaN)
    series.gauges.set('delayed', step, stats?.queues.delayed ?? Number.NaN)
    series.gauges.set('in flight', step, stats?.queues.inFlight ?? Number.NaN)
    series.gauges.set('store', step, stats?.storeBytes ?? Number.NaN)
    if (stats !== undefined) {
      series.counts.setTotal('dead-lettered', step, stats.sinceOpen.deadLettered)
      series.counts.setTotal('redelivered', step, stats.sinceOpen.redelivered)
      series.counts.setTotal('expired', step, stats.sinceOpen.expired)
    }
    this.#lastStep = step
  }

  /** Returns the longest delay since the last call, in seconds. The histogram includes its own interval. */
  #loopDelay(): number {
    const loop = this.#loop
    if (loop === undefined || loop.count === 0) return 0
    const delay = loop.max / NANOSECONDS - LOOP_RESOLUTION_MS / 1000
    loop.reset()
    return Math.max(0, delay)
  }

  /** Returns the steps of a resolution that have values, after a time in ms since the epoch. */
  range(resolution: SeriesRange['resolution'], length: number, after = 0): SeriesRange {
    const series = this.#series
    if (series === undefined) return { resolution, from: 0, to: 0 }
    const steps = resolution === 'step' ? 1 : STEPS_PER_MINUTE
    // A minute is shown when its last step has ended.
    const to = Math.floor((this.#lastStep + 1) / steps)
    const first = Math.floor(series.firstStep / steps)
    const from = Math.max(first, to - length, Math.ceil(after / (this.stepMs * steps)))
    return { resolution, from: Math.min(from, to), to }
  }

  /** The series; undefined before the first step has ended. */
  get series(): AllSeries | undefined {
    return this.#series
  }

  /** Returns the history of one channel, and follows the channel for the next ten minutes. */
  async channel(channel: ChannelName, range: SeriesRange): Promise<ChannelHistory | undefined> {
    const series = this.#series
    if (series === undefined || this.#sources === undefined) return undefined
    const [state] = await this.#sources.states([channel])
    if (state === undefined) return undefined
    series.channels.ask(channel, this.#lastStep + 1)
    return series.channels.of(channel, range)
  }

  /** Ends the readings. */
  [Symbol.dispose](): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#loop?.disable()
  }
}

/** Every series. */
interface AllSeries {
  readonly firstStep: number
  readonly counts: SeriesTable
  readonly errors: SeriesTable
  readonly gauges: SeriesTable
  readonly peaks: SeriesTable
  readonly streams: SeriesTable
  readonly channels: ChannelHistories
  readonly agents: AgentHistories
}

function allSeries(states: ReadStates, firstStep: number): AllSeries {
  return {
    firstStep,
    counts: new SeriesTable('sum'),
    errors: new SeriesTable('sum'),
    gauges: new SeriesTable('last'),
    peaks: new SeriesTable('max'),
    streams: new SeriesTable('last'),
    channels: new ChannelHistories(MAX_TRACKED, states),
    agents: new AgentHistories(MAX_TRACKED),
  }
}
