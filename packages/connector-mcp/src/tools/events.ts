import type { StoredEvent } from '@signalbox/broker-core'
import { argument, encodedBody, isoTime, parseTimestamp, shownValue } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import type { ResultNote } from './answer-size.ts'
import { AnswerLimit, messagesOutcome } from './answer-size.ts'
import { emptyNote } from './broker-failures.ts'
import { ADDS, defineTool, READS } from './define-tool.ts'
import { eventsOutput, notedConfirmation, noteOutput } from './results.ts'
import type { ToolOutcome } from './tool.ts'

export const eventsPublish = defineTool({
  name: 'events_publish',
  title: 'Publish an event',
  summary:
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
  async run(args, { broker }) {
    const { channel, metadata = '', tags = {} } = args
    const { id } = await broker.events.publish(channel, {
      body: await encodedBody(args, broker.caller),
      metadata,
      tags,
    })
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
  summary:
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
  async run(args, { broker }) {
    const { channel, metadata = '', tags = {} } = args
    const isNew = broker.channels.isMissing('events_store', channel)
    const stored = await broker.eventsStore.publish(channel, {
      body: await encodedBody(args, broker.caller),
      metadata,
      tags,
    })
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

export const eventsStoreRead = defineTool({
  name: 'events_store_read',
  title: 'Read stored events',
  summary:
    'Reads stored events, oldest first, from a sequence, a time, or the first event, and removes nothing. ' +
    'To continue, set from_sequence to the last sequence plus 1. For the newest events, use events_store_read_latest. ' +
    'Returns a JSON array of {body, metadata, tags, sequence, timestamp}.',
  input: Type.Object(
    {
      channel: argument.channel('The events store.'),
      from_sequence: Type.Optional(
        Type.Integer({
          description: 'The first sequence to return. Not with from_time.',
          minimum: 1,
          maximum: Number.MAX_SAFE_INTEGER,
        }),
      ),
      from_time: Type.Optional(
        argument.timestamp('ISO 8601 with zone: "2026-01-31T09:30:00Z". Not with from_sequence.'),
      ),
      max_messages: argument.maxMessages('The most events to return.'),
    },
    { additionalProperties: false },
  ),
  output: eventsOutput,
  annotations: READS,
  needs: { action: 'read', patterns: ['events_store'] },
  rule: ({ from_sequence, from_time }) =>
    from_sequence !== undefined && from_time !== undefined
      ? {
          argument: 'from_time',
          given: shownValue(from_time),
          allowed: 'left out when from_sequence is given: use one of the two',
        }
      : undefined,
  async run({ channel, from_sequence, from_time, max_messages }, context) {
    const { broker } = context
    const limit = new AnswerLimit(context)
    const events = await broker.eventsStore.read(channel, {
      maxMessages: max_messages,
      ...(await limit.bound()),
      fromSequence: from_sequence,
      fromTimestamp: from_time === undefined ? undefined : parseTimestamp(from_time),
    })
    const next = (events.at(-1)?.sequence ?? 0) + 1
    const remedy = `To continue, call events_store_read with from_sequence ${next}.`
    const rest = limit.rest(events.length, max_messages, remedy)
    return eventsOutcome(events, events.length > 0 ? rest : await emptyNote(broker, 'events_store', channel))
  },
})

export const eventsStoreReadLatest = defineTool({
  name: 'events_store_read_latest',
  title: 'Read the newest stored events',
  summary:
    'Reads the newest stored events, newest first, and removes nothing. Returns a JSON array as events_store_read.',
  input: Type.Object(
    {
      channel: argument.channel('The events store.'),
      count: Type.Optional(
        Type.Integer({
          description: 'The most events to return.',
          minimum: 1,
          maximum: 100,
          default: 1,
        }),
      ),
    },
    { additionalProperties: false },
  ),
  output: eventsOutput,
  annotations: READS,
  needs: { action: 'read', patterns: ['events_store'] },
  async run({ channel, count = 1 }, context) {
    const { broker } = context
    const limit = new AnswerLimit(context)
    const events = await broker.eventsStore.readLatest(channel, { maxMessages: count, ...(await limit.bound()) })
    const before = events.at(-1)?.sequence ?? 0
    const remedy = `For the events before sequence ${before}, call events_store_read with an earlier from_sequence.`
    const rest = limit.rest(events.length, count, remedy)
    return eventsOutcome(events, events.length > 0 ? rest : await emptyNote(broker, 'events_store', channel))
  },
})

function eventsOutcome(events: readonly StoredEvent[], note: ResultNote | undefined): ToolOutcome {
  return messagesOutcome(
    'events',
    events.map((message) => ({ message })),
    ({ message: { sequence, timestamp } }) => ({ sequence, timestamp: isoTime(timestamp) }),
    note,
  )
}
