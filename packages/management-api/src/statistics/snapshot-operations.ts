import { CHANNEL_TYPES } from '@signalbox/broker-core'
import type { BrokerHandle, ChannelInfo, ChannelName } from '@signalbox/broker-core'
import { argument, isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import { channelItem, channelStatistics, observerHandle, queueItem, queueStatistics } from './statistics-operations.ts'
import { flowFields, flowShape } from './statistics.ts'

/** The number of busiest channels and deepest queues in the snapshot. */
const TOP = 10

const deepQueue = Type.Object({
  ...queueItem.properties,
  oldest_waiting: Type.Union([Type.String(), Type.Null()], {
    description: 'The time at which the oldest waiting message was sent, ISO 8601; null if it is not known.',
  }),
})

const count = (description: string) => Type.Integer({ minimum: 0, description })

const snapshotRoute = defineManagementRoute({
  name: '/api/snapshot',
  summary: 'The current state of the broker.',
  input: Type.Object({}, STRICT),
  output: Type.Object({
    time: Type.String({ description: 'ISO 8601.' }),
    nodes: Type.Array(
      Type.Object({
        node: Type.String(),
        version: Type.String(),
        engine: Type.String(),
        ready: Type.Boolean(),
        healthy: Type.Boolean(),
        uptime_seconds: Type.Number({ minimum: 0 }),
      }),
      { description: 'The node that answers.' },
    ),
    since: Type.String({
      description: 'The time since which totals and types count: the start of the node, ISO 8601.',
    }),
    totals: Type.Object(flowFields),
    types: Type.Array(
      Type.Object({
        type: argument.channelType('The channel type.'),
        channels: count('Channels of this type.'),
        ...flowFields,
      }),
    ),
    queues: Type.Object({
      waiting: count('Messages in all queues that can be received now.'),
      delayed: count('Messages that become visible later.'),
      in_flight: count('Leased messages.'),
    }),
    store: Type.Object({ bytes: count('Bytes on disk.') }),
    top_channels: Type.Array(channelItem, { description: `The ${TOP} channels with the most messages in and out.` }),
    deepest_queues: Type.Array(deepQueue, { description: `The ${TOP} queues with the most waiting messages.` }),
    agents: Type.Object({
      registered: count('Registered agents.'),
      in_flight: count('Requests under way from this node to agents.'),
    }),
    streams: Type.Unsafe<Record<string, number>>({
      type: 'object',
      additionalProperties: { type: 'integer', minimum: 0 },
      description: 'Open streams of server-sent events, by connector.',
    }),
    monitors: count('Open monitors.'),
    audit_dropped: count('Audit entries lost since the start.'),
  }),
  async run(_query, call) {
    const { environment, services } = call
    const { statistics } = environment
    const [status, engine, channels, agents = []] = await Promise.all([
      environment.node(),
      services.broker.stats(),
      observerHandle(call).channels.list({}, rankOf),
      services.agents?.list(),
    ])
    const statesOf = (top: readonly Rank[]): Promise<readonly ChannelInfo[]> =>
      observerHandle(call).channels.states(top)
    const [busiest, deepest] = await Promise.all([
      statesOf(top(channels, ({ moved }) => moved)),
      statesOf(top(channels, ({ waiting }) => waiting)),
    ])
    const oldest = await Promise.all(deepest.map(({ name }) => oldestWaiting(observerHandle(call), name)))
    const { node, version, ready, healthy, uptime_seconds } = status
    return {
      time: isoTime(Date.now()),
      nodes: [{ node, version, engine: status.engine, ready, healthy, uptime_seconds }],
      since: isoTime(statistics.since),
      totals: flowShape(statistics.totals()),
      types: CHANNEL_TYPES.map((type) => {
        const flow = statistics.ofType(type)
        const { length } = channels.filter((channel) => channel.type === type)
        return Object.assign({ type, channels: length }, flowShape(flow))
      }),
      queues: {
        waiting: engine.queues.waiting,
        delayed: engine.queues.delayed,
        in_flight: engine.queues.inFlight,
      },
      store: { bytes: engine.storeBytes },
      top_channels: busiest.map((info) => channelStatistics(info, statistics)),
      deepest_queues: deepest.map((info, i) => {
        const sent = oldest[i]
        const oldestWaitingAt = sent === undefined ? null : isoTime(sent)
        return Object.assign(queueStatistics(info, statistics), { oldest_waiting: oldestWaitingAt })
      }),
      agents: {
        registered: agents.length,
        in_flight: agents.reduce((sum, { in_flight }) => sum + in_flight, 0),
      },
      streams: { ...environment.streams() },
      monitors: environment.monitors.size,
      audit_dropped: environment.audit.dropped,
    }
  },
})

/** The numbers by which the snapshot selects channels. */
interface Rank extends ChannelName {
  /** Messages in and out. */
  readonly moved: number
  readonly waiting: number
}

function rankOf({ type, name, incoming, outgoing, queue }: ChannelInfo): Rank {
  return { type, name, moved: incoming + outgoing, waiting: queue?.waiting ?? 0 }
}

/** A queue that cannot be read does not hide the others. */
async function oldestWaiting({ queues }: BrokerHandle, name: string): Promise<number | undefined> {
  return queues.oldestWaiting(name).catch(() => undefined)
}

/** Leaves out channels without messages. */
function top(channels: readonly Rank[], measure: (channel: Rank) => number): readonly Rank[] {
  return channels
    .filter((channel) => measure(channel) > 0)
    .toSorted((a, b) => measure(b) - measure(a))
    .slice(0, TOP)
}

export const snapshotOperations: readonly Operation[] = [snapshotRoute]
