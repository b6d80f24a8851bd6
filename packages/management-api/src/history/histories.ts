import type { ChannelName, ChannelState } from '@signalbox/broker-core'

import { PacedReading } from './sampling.ts'
import type { ChannelTraffic } from './sampling.ts'
import { SeriesTable, shownValues } from './time-series.ts'
import type { SeriesRange } from './time-series.ts'

/** Returns the states of channels, without those that do not exist. */
export type ReadStates = (channels: readonly ChannelName[]) => Promise<readonly ChannelState[]>

/** The channels that an operator asked for and that are followed in addition to the most active ones. */
const MAX_ASKED = 20
/** The steps for which such a channel is followed after the last question: ten minutes. */
const ASKED_STEPS = 120

/** The series of one channel. */
interface ChannelSeries extends ChannelName {
  readonly traffic: SeriesTable
  readonly state: SeriesTable
  /** The step until which an operator's question keeps the series. */
  askedUntil: number
}

/** The histories of single channels: the most active ones, and those that operators look at. */
export class ChannelHistories {
  readonly #active: MostActive<ChannelSeries>
  readonly #asked = new Map<string, ChannelSeries>()
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
    for (const [key, one] of byKey) {
      this.#active.add(key, one.messagesIn + one.messagesOut, () => this.#asked.get(key) ?? channelSeries(one))
    }
    for (const [key, { askedUntil }] of this.#asked) if (askedUntil < step) this.#asked.delete(key)
    const states = await this.#states.value(waitMs)
    for (const series of this.#all()) {
      const { messagesIn = 0, messagesOut = 0 } = byKey.get(keyOf(series)) ?? {}
      const { queue, eventsStore } = states?.get(keyOf(series)) ?? {}
      series.traffic.set('in', step, messagesIn)
      series.traffic.set('out', step, messagesOut)
      series.state.set('depth', step, queue?.waiting ?? eventsStore?.entries ?? Number.NaN)
      series.state.set('in flight', step, queue?.inFlight ?? Number.NaN)
      series.state.set('dead-lettered', step, queue?.deadLettered ?? Number.NaN)
    }
  }

  /** Follows a channel that an operator looks at, from the next step on. */
  ask(channel: ChannelName, step: number): void {
    const key = keyOf(channel)
    const series = this.#active.get(key) ?? this.#asked.get(key) ?? channelSeries(channel)
    series.askedUntil = step + ASKED_STEPS
    // The map's order is the order of the last questions.
    this.#asked.delete(key)
    this.#asked.set(key, series)
    const [oldest] = this.#asked.keys()
    if (this.#asked.size > MAX_ASKED && oldest !== undefined) this.#asked.delete(oldest)
  }

  #all(): readonly ChannelSeries[] {
    return [...new Set([...this.#active.list(), ...this.#asked.values()])]
  }

  /** Returns the most active channels, at most `limit`. */
  mostActive(limit: number, range: SeriesRange): ChannelHistory[] {
    return this.#active
      .list()
      .slice(0, limit)
      .map((series) => channelHistory(series, range))
  }

  /** Returns the history of one channel; undefined if it is not followed. */
  of(channel: ChannelName, range: SeriesRange): ChannelHistory | undefined {
    const key = keyOf(channel)
    const series = this.#active.get(key) ?? this.#asked.get(key)
    return series && channelHistory(series, range)
  }
}

function keyOf({ type, name }: ChannelName): string {
  return `${type} ${name}`
}

function channelSeries({ type, name }: ChannelName): ChannelSeries {
  return { type, name, traffic: new SeriesTable('sum', true), state: new SeriesTable('last', true), askedUntil: 0 }
}

/** The history of one channel in answers. */
export type ChannelHistory = ReturnType<typeof channelHistory>

function channelHistory({ type, name, traffic, state }: ChannelSeries, range: SeriesRange) {
  return {
    type,
    name,
    messages_in: traffic.values('in', range),
    messages_out: traffic.values('out', range),
    depth: state.values('depth', range),
    in_flight: state.values('in flight', range),
    dead_lettered: state.values('dead-lettered', range),
  }
}

/** The requests to one agent since the start. */
export interface AgentCallTotals {
  readonly calls: number
  readonly errors: number
  /** The sum of their durations. */
  readonly seconds: number
}

/** Returns the totals of each agent. */
export type ReadAgentCalls = () => Iterable<readonly [agentId: string, totals: AgentCallTotals]>

const NO_CALLS: AgentCallTotals = { calls: 0, errors: 0, seconds: 0 }

/** The histories of the most active agents. */
export class AgentHistories {
  readonly #active: MostActive<{ readonly agentId: string; readonly series: SeriesTable }>
  #last = new Map<string, AgentCallTotals>()

  constructor(limit: number) {
    this.#active = new MostActive(limit)
  }

  /** Sets the values of a step from the totals. Agents without totals were removed. */
  set(step: number, totals: Iterable<readonly [string, AgentCallTotals]>): void {
    this.#active.decay()
    const last = this.#last
    this.#last = new Map()
    for (const [agentId, { calls, errors, seconds }] of totals) {
      const before = last.get(agentId) ?? NO_CALLS
      // The series of an agent that was removed and registered again starts at 0.
      const base = before.calls > calls ? NO_CALLS : before
      this.#last.set(agentId, { calls, errors, seconds })
      const grown = calls - base.calls
      const known =
        grown > 0
          ? this.#active.add(agentId, grown, () => ({ agentId, series: new SeriesTable('sum', true) }))
          : this.#active.get(agentId)
      known?.series.set('calls', step, grown)
      known?.series.set('errors', step, errors - base.errors)
      known?.series.set('seconds', step, seconds - base.seconds)
    }
    for (const { agentId } of this.#active.list()) if (!this.#last.has(agentId)) this.#active.delete(agentId)
  }

  /** Returns the most active agents, at most `limit`. */
  mostActive(limit: number, range: SeriesRange) {
    return this.#active
      .list()
      .slice(0, limit)
      .map(({ agentId, series }) => agentHistory(agentId, series, range))
  }

  /** Returns the history of one agent; undefined without calls. */
  of(agentId: string, range: SeriesRange) {
    const known = this.#active.get(agentId)
    return known && agentHistory(agentId, known.series, range)
  }
}

function agentHistory(agentId: string, series: SeriesTable, range: SeriesRange) {
  const calls = series.exactValues('calls', range)
  // Without a call this is 0 / 0, which is NaN: no value.
  const latency = series.exactValues('seconds', range).map((sum, i) => sum / (calls[i] ?? Number.NaN))
  return {
    agent_id: agentId,
    calls: shownValues(calls),
    errors: series.values('errors', range),
    latency_seconds: shownValues(latency),
  }
}

/** The share of its weight that a member keeps from one step to the next: half of it after six minutes. */
const DECAY = 0.99
/** A newcomer must be this much more active than the member that it replaces. */
const LEAD = 2

interface Member<Value> {
  readonly value: Value
  weight: number
}

/**
 * The most active of many channels or agents, at most `limit`. Their weight decays, so a channel that
 * was busy yesterday is replaced by one that is busy now.
 */
export class MostActive<Value> {
  readonly #limit: number
  readonly #members = new Map<string, Member<Value>>()

  constructor(limit: number) {
    this.#limit = limit
  }

  get(key: string): Value | undefined {
    return this.#members.get(key)?.value
  }

  /** Lets the weights decay. Called once a step, before {@link add}. */
  decay(): void {
    for (const member of this.#members.values()) member.weight *= DECAY
  }

  /** Adds to the weight of a member, or admits it. Returns undefined while others are more active. */
  add(key: string, weight: number, make: () => Value): Value | undefined {
    const known = this.#members.get(key)
    if (known !== undefined) {
      known.weight += weight
      return known.value
    }
    if (this.#members.size >= this.#limit && !this.#makeRoom(weight)) return undefined
    const value = make()
    this.#members.set(key, { value, weight })
    return value
  }

  #makeRoom(weight: number): boolean {
    let lowest: string | undefined
    let lowestWeight = weight / LEAD
    for (const [key, member] of this.#members) {
      if (member.weight >= lowestWeight) continue
      lowest = key
      lowestWeight = member.weight
    }
    return lowest !== undefined && this.#members.delete(lowest)
  }

  delete(key: string): void {
    this.#members.delete(key)
  }

  /** Returns the members, the most active first. */
  list(): readonly Value[] {
    return [...this.#members.values()].toSorted((a, b) => b.weight - a.weight).map(({ value }) => value)
  }
}
