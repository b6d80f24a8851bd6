import { CHANNEL_TYPES } from '@signalbox/broker-core'
import type { ChannelType } from '@signalbox/broker-core'
import { isoTime } from '@signalbox/http-kit'
import type { Static } from 'typebox'

import type { ShownChannelHistory } from './channel-histories.ts'
import type { historyData } from './history-schema.ts'
import type { History } from './history.ts'
import { missingValues } from './series-table.ts'
import type { ShownValues } from './series-table.ts'
import { FINE_STEPS, MINUTES, STEPS_PER_MINUTE } from './time-series.ts'

/** The part of a history that an operator asks for. */
export interface HistoryRequest {
  readonly range: 'hour' | 'day'
  /** In ms since the epoch. */
  readonly after: number
  /** The most channels in the answer, or one channel. */
  readonly channels: number | { readonly type: ChannelType; readonly name: string }
  /** The most agents in the answer, or the id of one. */
  readonly agents: number | string
}

/** Returns the history of the node as `/api/history` answers it, without the node's name. */
export async function historyAnswer(
  history: History,
  { range: wanted, after, channels, agents }: HistoryRequest,
): Promise<Omit<Static<typeof historyData>, 'node'>> {
  const day = wanted === 'day'
  const stepMs = day ? history.stepMs * STEPS_PER_MINUTE : history.stepMs
  const range = history.range(day ? 'minute' : 'step', day ? MINUTES : FINE_STEPS, after)
  const one = typeof channels === 'number' ? undefined : await history.channel(channels, range)
  const { series } = history
  const counts = (name: string): ShownValues => series?.counts.values(name, range) ?? missingValues(range)
  const gauges = (name: string): ShownValues => series?.gauges.values(name, range) ?? missingValues(range)
  return {
    start: isoTime(range.from * stepMs),
    end: isoTime(range.to * stepMs),
    step_seconds: stepMs / 1000,
    steps: range.to - range.from,
    messages: CHANNEL_TYPES.map((type) => ({
      type,
      messages_in: counts(`${type} in`),
      messages_out: counts(`${type} out`),
    })),
    errors: series?.errors.all(range) ?? {},
    queues: {
      waiting: gauges('waiting'),
      delayed: gauges('delayed'),
      in_flight: gauges('in flight'),
      dead_lettered: counts('dead-lettered'),
      redelivered: counts('redelivered'),
      expired: counts('expired'),
    },
    streams: series?.streams.all(range) ?? {},
    event_loop_delay_seconds: series?.peaks.values('loop', range) ?? missingValues(range),
    store_bytes: gauges('store'),
    memory_bytes: gauges('memory'),
    heap_bytes: gauges('heap'),
    channels:
      typeof channels === 'number'
        ? (series?.channels.mostActive(channels, range) ?? [])
        : found<ShownChannelHistory>(one),
    agents:
      typeof agents === 'number'
        ? (series?.agents.mostActive(agents, range) ?? [])
        : found(series?.agents.of(agents, range)),
  }
}

function found<Item>(item: Item | undefined): Item[] {
  return item === undefined ? [] : [item]
}
