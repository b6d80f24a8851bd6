import type { ChannelName, ChannelState, ChannelType } from '@signalbox/broker-core'

import type { ChannelTraffic } from './active-channels.ts'
import { MostActive } from './most-active.ts'
import { PacedReading } from './paced-reading.ts'
import { shownValues } from './series-table.ts'
import type { SeriesRange } from './time-series.ts'
import { TimeSeries } from './time-series.ts'

/** Returns the states of channels, without those that do not exist. */
export type ReadStates = (channels: readonly ChannelName[]) => Promise<readonly ChannelState[]>

/** The channels that an operator asked for and that are followed in addition to the most active ones. */
const MAX_ASKED = 20
/** The steps for which such a channel is followed after the last question: ten minutes. */
const ASKED_STEPS = 120

/** The series of one channel. */
class ChannelHistory {
  readonly type: ChannelType
  readonly name: string
  /** The step until which an operator's question keeps the series. */
  askedUntil = 0
  readonly #messagesIn: TimeSeries
  readonly #messagesOut: TimeSeries
  readonly #depth: TimeSeries
  readonly #inFlight: TimeSeries
  readonly #deadLettered: TimeSeries

  constructor({ type, name }: ChannelName, step: number) {
    this.type = type
    this.name = name
    this.#messagesIn = new TimeSeries('sum', step, true)
    this.#messagesOut = new TimeSeries('sum', step, true)
    this.#depth = new TimeSeries('last', step, true)
    this.#inFlight = new TimeSeries('last', step, true)
    this.#deadLettered = new TimeSeries('last', step, true)
  }

  set(step: number, traffic: ChannelTraffic | undefined, state: ChannelState | undefined): void {
    this.#messagesIn.set(step, traffic?.messagesIn ?? 0)
    this.#messagesOut.set(step, traffic?.messagesOut ?? 0)
    this.#depth.set(step, state?.queue?.waiting ?? state?.eventsStore?.entries ?? Number.NaN)
    this.#inFlight.set(step, state?.queue?.inFlight ?? Number.NaN)
    this.#deadLettered.set(step, state?.queue?.deadLettered ?? Number.NaN)
  }

  shown(range: SeriesRange) {
    const { type, name } = this
    return {
      type,
      name,
      messages_in: shownValues(this.#messagesIn.values(range)),
      messages_out: shownValues(this.#messagesOut.values(range)),
      depth: shownValues(this.#depth.values(range)),
      in_flight: shownValues(this.#inFlight.values(range)),
      dead_lettered: shownValues(this.#deadLettered.values(range)),
    }
  }
}

export type ShownChannelHistory = ReturnType<ChannelHistory['shown']>

/** The histories of single channels: the most active ones, and those that operators look at. */
export class ChannelHistories {
  readonly #active: MostActive<ChannelHistory>
  readonly #asked = new Map<string, ChannelHistory>()
  readonly #states: PacedReading<ReadonlyMap<string, ChannelState>>

  constructor(limit: number, readStates: ReadStates) {
    this.#active = new MostActive(limit)
    this.#states = new PacedReading(async () => {
      const states = await readStates(this.#all())
      return new Map(states.map((state) => [keyOf(state), state]))
    })
  }

  /** Sets the values of a step. */
  async set(step: number, traffic: readonly ChannelTraffic[], waitMs: number): Promise<void> {
    const byKey = new Map(traffic.map((one) => [keyOf(one), one]))
    this.#active.decay()
    for (const [key, one] of byKey) this.#admit(key, one, step)
    for (const [key, { askedUntil }] of this.#asked) if (askedUntil < step) this.#asked.delete(key)
    const states = await this.#states.value(waitMs)
    for (const history of this.#all()) history.set(step, byKey.get(keyOf(history)), states?.get(keyOf(history)))
  }

  #admit(key: string, traffic: ChannelTraffic, step: number): void {
    this.#active.add(
      key,
      traffic.messagesIn + traffic.messagesOut,
      () => this.#asked.get(key) ?? new ChannelHistory(traffic, step),
    )
  }

  /** Follows a channel that an operator looks at, from the next step on. */
  ask(channel: ChannelName, step: number): void {
    const key = keyOf(channel)
    const history = this.#active.get(key) ?? this.#asked.get(key) ?? new ChannelHistory(channel, step)
    history.askedUntil = step + ASKED_STEPS
    // The map's order is the order of the last questions.
    this.#asked.delete(key)
    this.#asked.set(key, history)
    const [oldest] = this.#asked.keys()
    if (this.#asked.size > MAX_ASKED && oldest !== undefined) this.#asked.delete(oldest)
  }

  #all(): readonly ChannelHistory[] {
    return [...new Set([...this.#active.list(), ...this.#asked.values()])]
  }

  /** Returns the most active channels, at most `limit`. */
  mostActive(limit: number, range: SeriesRange): ShownChannelHistory[] {
    return this.#active
      .list()
      .slice(0, limit)
      .map((history) => history.shown(range))
  }

  /** Returns the history of one channel; undefined if it is not followed. */
  of(channel: ChannelName, range: SeriesRange): ShownChannelHistory | undefined {
    const key = keyOf(channel)
    return (this.#active.get(key) ?? this.#asked.get(key))?.shown(range)
  }
}

function keyOf({ type, name }: ChannelName): string {
  return `${type} ${name}`
}
