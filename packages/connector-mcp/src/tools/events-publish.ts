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
    'Publishes an event to the current subscribers of a channel. The event is not stored: without subscribers it is lost, and it cannot be read later. ' +
    'Use it for notifications that matter only now. For events that must not be lost or that are read later, use events_store_publish; for work that one consumer must do, queue_send. ' +
    'Returns a confirmation.',
  input: Type.Object(
    {
      channel: argument.channel('The events channel to publish to.'),
      body: argument.text('The event itself: plain text or JSON as text.'),
      metadata: argument.metadata(),
      tags: argument.tags(),
    },
    { additionalProperties: false },
  ),
  output: Type.Object({
    channel: Type.String({ description: 'The events channel.' }),
    id: Type.String({ description: 'The id of the event.' }),
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
  title: 'Publish an event to an events store',
  description:
    'Appends an event durably to an events-store channel, with the next sequence number of that channel. The channel is created if it does not exist. ' +
    'Clients can read it later, any number of times, with events_store_read or events_store_read_latest. For a message that one consumer receives, use queue_send. ' +
    'Returns a confirmation after the event is stored.',
  input: Type.Object(
    {
      channel: argument.channel('The events-store channel to publish to.'),
      body: argument.text('The event itself: plain text or JSON as text.'),
      metadata: argument.metadata(),
      tags: argument.tags(argument.DEDUPLICATION_HINT),
    },
    { additionalProperties: false },
  ),
  output: Type.Object({
    channel: Type.String({ description: 'The events-store channel.' }),
    id: Type.String({ description: 'The id of the stored event.' }),
    sequence: Type.Integer({ minimum: 1, description: 'The sequence number of the event in the channel.' }),
    timestamp: Type.String({ description: 'The time at which the event was stored, ISO 8601.' }),
    duplicate: Type.Boolean({
      description: 'True if an event with this message_id was stored before, and this one was not.',
    }),
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
