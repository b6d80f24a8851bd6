import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

/** The answer of `/api/history`. */

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

export const historyData = Type.Object({
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
