import { argument, encodedBody, isoTime } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { defineAction, ofType, STRICT } from '../operation.ts'
import type { Operation } from '../operation.ts'

const publishEvent = defineAction({
  name: 'publish_event',
  summary: 'Publishes an event to the current subscribers, as events_publish does.',
  input: Type.Object(
    {
      channel: argument.channel(`The events channel. ${argument.CHANNEL_RULES}`),
      body: argument.text('The payload of the event: plain text or JSON as text.'),
      metadata: argument.metadata(),
      tags: argument.tags(),
    },
    STRICT,
  ),
  output: Type.Object({ channel: Type.String(), id: Type.String({ description: 'The id of the event.' }) }),
  target: ofType('events'),
  async run(args, { broker }) {
    const { channel, metadata = '', tags = {} } = args
    const { id } = await broker.events.publish(channel, {
      body: await encodedBody(args, broker.caller),
      metadata,
      tags,
    })
    return { channel, id }
  },
  detail: ({ id }) => `message ${id}`,
})

const publishEventStore = defineAction({
  name: 'publish_event_store',
  summary: 'Appends an event to an events store, as events_store_publish does.',
  input: Type.Object(
    {
      channel: argument.channel(`The events-store channel. ${argument.CHANNEL_RULES}`),
      body: argument.text('The payload of the event: plain text or JSON as text.'),
      metadata: argument.metadata(),
      tags: argument.tags(argument.DEDUPLICATION_HINT),
    },
    STRICT,
  ),
  output: Type.Object({
    channel: Type.String(),
    id: Type.String({ description: 'The id of the event.' }),
    sequence: Type.Integer({ minimum: 1, description: 'The position of the event in the channel.' }),
    timestamp: Type.String({ description: 'The time of storage, ISO 8601.' }),
    duplicate: Type.Boolean({
      description: 'True if an event with this message_id tag was stored before: nothing new was stored.',
    }),
  }),
  target: ofType('events_store'),
  async run(args, { broker }) {
    const { channel, metadata = '', tags = {} } = args
    const stored = await broker.eventsStore.publish(channel, {
      body: await encodedBody(args, broker.caller),
      metadata,
      tags,
    })
    const { id, sequence, timestamp, duplicate } = stored
    return { channel, id, sequence, timestamp: isoTime(timestamp), duplicate }
  },
  detail: ({ id }) => `message ${id}`,
})

export const eventOperations: readonly Operation[] = [publishEvent, publishEventStore]
