import { encodeText } from '@signalbox/broker-core'
import { argument, isoTime } from '@signalbox/http-kit'
import { Type } from 'typebox'

import { ADDS } from './annotations.ts'
import { defineTool } from './define-tool.ts'
import { notedConfirmation, noteOutput } from './results.ts'

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
    note: noteOutput,
  }),
  annotations: ADDS,
  needs: { action: 'send', patterns: ['events'] },
  async run({ channel, body, metadata = '', tags = {} }, { broker }) {
    const { id } = await broker.events.publish(channel, { body: encodeText(body), metadata, tags })
    const name = JSON.stringify(channel)
    // The event is published: if the number is not known, that is no failure of the call.
    const subscribers = await broker.channels.subscribers('events', channel).catch(() => undefined)
    const hint =
      subscribers === 0
        ? `This node knows 0 subscribers of events channel ${name}, so the event probably reached none. It is not stored: for events that must not be lost, use events_store_publish.`
        : undefined
    return notedConfirmation(`Event published to channel ${name}.`, { channel, id }, hint)
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
    note: noteOutput,
  }),
  annotations: ADDS,
  needs: { action: 'send', patterns: ['events_store'] },
  async run({ channel, body, metadata = '', tags = {} }, { broker }) {
    const isNew = broker.channels.isMissing('events_store', channel)
    const stored = await broker.eventsStore.publish(channel, { body: encodeText(body), metadata, tags })
    const { id, sequence, duplicate } = stored
    const name = JSON.stringify(channel)
    const done = duplicate
      ? `Events store ${name} already has an event with this message_id, with sequence ${sequence}; no event was added.`
      : `Event stored in events store ${name} with sequence ${sequence}.`
    const hint = isNew
      ? `Events store ${name} did not exist; this call created it. channel_list shows the others.`
      : undefined
    const content = { channel, id, sequence, timestamp: isoTime(stored.timestamp), duplicate }
    return notedConfirmation(done, content, hint)
  },
})
