import { CHANNEL_TYPES } from '@signalbox/broker-core'
import type { ChannelType } from '@signalbox/broker-core'
import { argument, isoTime, parseTimestamp } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'
import type { Static } from 'typebox'

import { invalidParameters } from '../errors.ts'
import { defineManagementRoute, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'
import type { ChannelHistory } from './histories.ts'
import { MAX_TRACKED } from './history.ts'
import type { History } from './history.ts'
import { FINE_STEPS, MINUTES, STEPS_PER_MINUTE } from './time-series.ts'
import type { ShownValues } from './time-series.ts'

/** The default number of channels and agents in an answer. */
const DEFAULT_TRACKED = 10

const tracked = (what: string) =>
  Type.Optional(
    Type.Integer({
      description: `The most ${what} in the answer.`,
      minimum: 0,
      maximum: MAX_TRACKED,
      default: DEFAULT_TRACKED,
    }),
  )

const historyQuery = Type.Object(
  {
    range: Type.Optional(
      Type.Union([Type.Literal('hour'), Type.Literal('day')], {
        description: 'hour: the last hour in steps of 5 s. day: the last day in steps of 1 min.',
        default: 'hour',
      }),
    ),
    after: Type.Optional(
      argument.timestamp('Only steps that begin at or after this time: `end` of the previous answer, ISO 8601.'),
    ),
    channels: tracked('channels'),
    agents: tracked('agents'),
    channel: Type.Optional(
      Type.String({
        description:
          'Only this channel of the type `type`, instead of the most active ones. The node follows it for ten minutes after each such request.',
        minLength: 1,
        maxLength: 512,
      }),
    ),
    type: Type.Optional(argument.channelType('The type of `channel`.')),
    agent_id: Type.Optional(
      Type.String({ description: 'Only this agent, instead of the most active ones.', minLength: 1, maxLength: 512 }),
    ),
  },
  STRICT,
)

const values = (description: string) =>
  Type.Array(Type.Union([Type.Number(), Type.Null()]), { description: `${description} One value a step.` })

const byName = (description: string) =>
  Type.Unsafe<Record<string, (number | null)[]>>({
    type: 'object',
    additionalProperties: { type: 'array', items: { anyOf: [{ type: 'number' }, { type: 'null' }] } },
    description,
  })

const messagesIn = values('Messages accepted.')
const messagesOut = values('Messages delivered; each delivery counts.')

const historyData = Type.Object({
  node: Type.String({ description: 'The node that answers. Each node records only its traffic.' }),
  start: Type.String({ description: 'The beginning of the first step, ISO 8601.' }),
  end: Type.String({ description: 'The end of the last step, ISO 8601. Send it as `after` to get only later steps.' }),
  step_seconds: Type.Number({ description: 'The length of a step: 5 for an hour, 60 for a day.' }),
  steps: Type.Integer({
    minimum: 0,
    description:
      'The number of steps, and of values in every list. Step i begins at `start` + i × `step_seconds`; null is a step without a value.',
  }),
  messages: Type.Array(
    Type.Object({
      type: argument.channelType('The channel type.'),
      messages_in: messagesIn,
      messages_out: messagesOut,
    }),
    { description: 'Messages of this node in each step, by channel type. Divide by `step_seconds` for a rate.' },
  ),
  errors: byName('Failed calls to the broker in each step, by error code.'),
  queues: Type.Object({
    waiting: values('Messages in all queues that can be received now.'),
    delayed: values('Messages that become visible later.'),
    in_flight: values('Leased messages.'),
    dead_lettered: values('Messages that this node moved to a dead-letter queue in the step.'),
    redelivered: values('Deliveries of messages that had been delivered before, by this node in the step.'),
    expired: values('Messages that this node removed because they expired in the step.'),
  }),
  streams: byName('Open streams of server-sent events of this node, by connector.'),
  event_loop_delay_seconds: values('The longest delay of the event loop in the step.'),
  store_bytes: values('Bytes on disk.'),
  memory_bytes: values('Memory of the process (resident set).'),
  heap_bytes: values('Memory that JavaScript uses.'),
  channels: Type.Array(
    Type.Object({
      type: argument.channelType('The channel type.'),
      name: Type.String(),
      messages_in: messagesIn,
      messages_out: messagesOut,
      depth: values('Waiting messages of a queue, or entries of an events store; null for other types.'),
      in_flight: values('Leased messages of a queue; null for other types.'),
      dead_lettered: values('Messages that moved from the queue to a dead-letter queue since its creation.'),
    }),
    { description: 'The most active channels first.' },
  ),
  agents: Type.Array(
    Type.Object({
      agent_id: Type.String(),
      calls: values('Requests to the agent that ended in the step.'),
      errors: values('Those that failed.'),
      latency_seconds: values(
        'Their mean duration, until the answer or the end of the stream; null without a request.',
      ),
    }),
    { description: 'The most active agents first.' },
  ),
})

const historyRoute = defineManagementRoute({
  name: '/api/history',
  summary: 'Numbers of this node for plots: the last hour in steps of 5 s, or the last day in minutes.',
  input: historyQuery,
  output: historyData,
  async run(query, { environment }) {
    const request: HistoryRequest = {
      range: query.range ?? 'hour',
      after: query.after === undefined ? 0 : (parseTimestamp(query.after) ?? 0),
      channels: channelOf(query) ?? query.channels ?? DEFAULT_TRACKED,
      agents: query.agent_id ?? query.agents ?? DEFAULT_TRACKED,
    }
    const [{ node }, answer] = await Promise.all([environment.node(), historyAnswer(environment.history, request)])
    return { node, ...answer }
  },
})

export const historyOperations: readonly Operation[] = [historyRoute]

/** @throws ManagementError PARAMETER_INVALID if one of the two parameters is missing */
function channelOf({ type, channel }: Static<typeof historyQuery>) {
  if (type !== undefined && channel !== undefined) return { type, name: channel }
  if (type === undefined && channel === undefined) return undefined
  const [parameter, other] = type === undefined ? ['type', 'channel'] : ['channel', 'type']
  throw invalidParameters([{ parameter, given: 'missing', allowed: `given together with ${other}` }])
}

/** The part of a history that an operator asks for. */
interface HistoryRequest {
  readonly range: 'hour' | 'day'
  /** In ms since the epoch. */
  readonly after: number
  /** The most channels in the answer, or one channel. */
  readonly channels: number | { readonly type: ChannelType; readonly name: string }
  /** The most agents in the answer, or the id of one. */
  readonly agents: number | string
}

/** Returns the history of the node as `/api/history` answers it, without the node's name. */
async function historyAnswer(
  history: History,
  { range: wanted, after, channels, agents }: HistoryRequest,
): Promise<Omit<Static<typeof historyData>, 'node'>> {
  const day = wanted === 'day'
  const stepMs = day ? history.stepMs * STEPS_PER_MINUTE : history.stepMs
  const range = history.range(day ? 'minute' : 'step', day ? MINUTES : FINE_STEPS, after)
  const one = typeof channels === 'number' ? undefined : await history.channel(channels, range)
  const { series } = history
  const counts = (name: string): ShownValues => series?.counts.values(name, range) ?? []
  const gauges = (name: string): ShownValues => series?.gauges.values(name, range) ?? []
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
    event_loop_delay_seconds: series?.peaks.values('loop', range) ?? [],
    store_bytes: gauges('store'),
    memory_bytes: gauges('memory'),
    heap_bytes: gauges('heap'),
    channels:
      typeof channels === 'number' ? (series?.channels.mostActive(channels, range) ?? []) : found<ChannelHistory>(one),
    agents:
      typeof agents === 'number'
        ? (series?.agents.mostActive(agents, range) ?? [])
        : found(series?.agents.of(agents, range)),
  }
}

function found<Item>(item: Item | undefined): Item[] {
  return item === undefined ? [] : [item]
}
