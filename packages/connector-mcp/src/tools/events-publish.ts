import { encodeText } from '@signalbox/broker-core'
import { argument, isoTime } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { ADDS } from './annotations.ts'
import { defineTool } from './define-tool.ts'
import { confirmation } from './results.ts'

export const eventsPublish = defineTool({
  name: 'events_publish',
  title: 'Publish an event',
  description:
    'Publishes an event to the current subscribers, without storing it. ' +
    'For events that must not be lost, use events_store_publish; for work that one consumer must do, queue_send.',
  input: Type.Object(
    {
      channel: argument.channel('The events channel.'),
      body: argument.text('Text, or JSON as text.'),
      metadata: argument.metadata(),
      tags: argument.tags(),
    },
    { additionalProperties: false },
  ),
  output: Type.Object({
    channel: Type.String(),
    id: Type.String(),
  }),
  annotations: ADDS,
  needs: { action: 'send', patterns: ['events'] },
  async run({ channel, body, metadata = '', tags = {} }, { broker }) {
    const { id } = await broker.events.publish(channel, { body: encodeText(body), metadata, tags })
    return confirmation(`Event published to channel ${JSON.stringify(channel)}.`, { channel, id })
  },
})

export const eventsStorePublish = defineTool({
  name: 'events_store_publish',
  title: 'Store an event',
  description:
    'Appends an event to an events store, for repeated reads with events_store_read. ' +
    'For a message that one consumer receives, use queue_send.',
  input: Type.Object(
    {
      channel: argument.channel('The events store; created if it does not exist.'),
      body: argument.text('Text, or JSON as text.'),
      metadata: argument.metadata(),
      tags: argument.tags(argument.DEDUPLICATION_HINT),
    },
    { additionalProperties: false },
  ),
  output: Type.Object({
    channel: Type.String(),
    id: Type.String(),
    sequence: Type.Integer(),
    timestamp: Type.String(),
    duplicate: Type.Boolean(),
  }),
  annotations: ADDS,
  needs: { action: 'send', patterns: ['events_store'] },
  async run({ channel, body, metadata = '', tags = {} }, { broker }) {
    const stored = await broker.eventsStore.publish(channel, { body: encodeText(body), metadata, tags })
    const { id, sequence, duplicate } = stored
    const name = JSON.stringify(channel)
    const done = duplicate
      ? `Events store ${name} already has an event with this message_id, with sequence ${sequence}; no event was added.`
      : `Event stored in events store ${name} with sequence ${sequence}.`
    return confirmation(done, { channel, id, sequence, timestamp: isoTime(stored.timestamp), duplicate })
  },
})
