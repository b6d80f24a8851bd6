import { createHash } from 'node:crypto'

import { BrokerError, isReservedChannel } from '@signalbox/broker-core'
import type { BrokerHandle, ChannelType, MessageInput, QueueSendInput, SendResult } from '@signalbox/broker-core'
import { assertChannelName } from '@signalbox/broker-core/internal'
import { Type } from 'typebox'

import type { CeAnswer } from '../ce-exchange.ts'
import { invalidParameters } from '../errors.ts'
import type { IncomingEvent } from '../event/attributes.ts'
import { ANSWERS } from './answers.ts'
import { defineCeRoute, eventChannel, seconds, STRICT } from './route.ts'

/** An event of a send, and its channel. */
interface AddressedEvent {
  readonly channel: string
  readonly message: MessageInput
}

/** The channel of one of a request's events. */
interface Sent {
  readonly channel: string
  readonly id: string
  readonly sequence?: number
  readonly duplicate?: boolean
}

/** The parameters that decide how a repeated send is recognized. */
const DEDUPLICATION = {
  message_id: Type.Optional(
    Type.String({
      description:
        'The id by which a repeated send is recognized, in place of the `source` and `id` of the event; for a single event.',
      minLength: 1,
      maxLength: 256,
    }),
  ),
  deduplicate: Type.Optional(
    Type.Boolean({
      description: '`false` stores the event even if one with the same `source` and `id` was stored before.',
      default: true,
    }),
  ),
}

export const sendEvent = defineCeRoute({
  name: 'send/event',
  output: ANSWERS.published,
  method: 'POST',
  summary: 'Publishes the event to the current subscribers.',
  body: 'events',
  needs: { action: 'send', types: ['events'] },
  input: Type.Object({ channel: eventChannel() }, STRICT),
  async run(query, { broker, events }) {
    const addressed = addressAll('events', broker, events, query.channel)
    const sent: Sent[] = []
    for (const { channel, message } of addressed) {
      const { id } = await broker.events.publish(channel, message)
      sent.push({ channel, id })
    }
    return accepted('published', sent)
  },
})

export const sendEventStore = defineCeRoute({
  name: 'send/event-store',
  output: ANSWERS.stored,
  method: 'POST',
  summary: 'Appends the event to an events store, and answers after it is durable.',
  body: 'events',
  needs: { action: 'send', types: ['events_store'] },
  input: Type.Object({ channel: eventChannel(), ...DEDUPLICATION }, STRICT),
  async run(query, { broker, events }) {
    const addressed = deduplicated(addressAll('events_store', broker, events, query.channel), query)
    // All at once, in their order, so that they share a commit.
    const sent = await settleAll(
      addressed.map(async ({ channel, message }) =>
        sentTo(channel, await broker.eventsStore.publish(channel, message)),
      ),
    )
    return accepted('stored', sent)
  },
})

export const queueSend = defineCeRoute({
  name: 'queue/send',
  output: ANSWERS.stored,
  method: 'POST',
  summary: 'Stores the event in a queue, and answers after it is durable.',
  body: 'events',
  needs: { action: 'send', types: ['queues'] },
  input: Type.Object(
    {
      channel: eventChannel(),
      ...DEDUPLICATION,
      delay_seconds: seconds('Time until consumers can receive the message, in seconds; 0 means at once.'),
      expiration_seconds: seconds('Time after which an unreceived message is dropped, in seconds; 0 means never.'),
      max_receive_count: Type.Optional(
        Type.Integer({
          description:
            'Receives without an ack before the message moves to `dead_letter_queue`; 0 means unlimited. Requires `dead_letter_queue`.',
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          default: 0,
        }),
      ),
      dead_letter_queue: Type.Optional(
        Type.String({ description: 'Another queue; empty means none. Requires `max_receive_count`.', default: '' }),
      ),
    },
    STRICT,
  ),
  async run(query, { broker, events }) {
    const addressed = deduplicated(addressAll('queues', broker, events, query.channel), query)
    const { delay_seconds = 0, expiration_seconds = 0, max_receive_count = 0, dead_letter_queue = '' } = query
    if (dead_letter_queue !== '') assertSendable('queues', broker, dead_letter_queue)
    if (addressed.some(({ channel }) => channel === dead_letter_queue)) {
      throw invalidParameters([
        {
          parameter: 'dead_letter_queue',
          given: JSON.stringify(dead_letter_queue),
          allowed: 'another queue than the channel',
        },
      ])
    }
    // Each setting has its name: to join two objects costs more.
    const queued = (message: MessageInput): QueueSendInput => ({
      ...message,
      delayMs: delay_seconds * 1000,
      expirationMs: expiration_seconds * 1000,
      maxReceiveCount: max_receive_count,
      deadLetterQueue: dead_letter_queue,
    })
    const [first] = addressed
    if (first !== undefined && addressed.length === 1) {
      const { channel, message } = first
      return accepted('stored', [sentTo(channel, await broker.queues.send(channel, queued(message)))])
    }
    const byChannel = Map.groupBy(addressed, ({ channel }) => channel)
    const sent = await settleAll(
      [...byChannel].map(async ([channel, group]) => {
        const inputs = group.map(({ message }) => queued(message))
        const results = await broker.queues.sendBatch(channel, inputs)
        return results.map((result) => sentTo(channel, result))
      }),
    )
    return accepted('stored', sent.flat())
  },
})

/**
 * Returns the channel of each event: its subject, otherwise the channel of the query. Channels of a batch are checked
 * before its first event is sent, so that an invalid one has no effect. The Broker checks the channel of a single
 * event.
 */
export function addressAll(
  type: ChannelType,
  broker: BrokerHandle,
  events: readonly IncomingEvent[],
  fallback: string | undefined,
): readonly AddressedEvent[] {
  const sendable = new Set<string>()
  return events.map(({ subject, message }) => {
    const channel = subject ?? fallback
    if (channel === undefined) {
      throw invalidParameters([{ parameter: 'channel', allowed: 'present if the event has no subject' }])
    }
    if (events.length === 1) assertNotReserved(channel)
    else if (!sendable.has(channel)) {
      assertSendable(type, broker, channel)
      sendable.add(channel)
    }
    return { channel, message }
  })
}

/** @throws BrokerError CHANNEL_RESERVED, CHANNEL_INVALID, FORBIDDEN */
export function assertSendable(type: ChannelType, broker: BrokerHandle, channel: string): void {
  assertNotReserved(channel)
  assertChannelName(channel)
  broker.authorize('send', type, channel)
}

function assertNotReserved(channel: string): void {
  if (!isReservedChannel(channel)) return
  throw new BrokerError('CHANNEL_RESERVED', 'reserved channel name', { channel: channel.slice(0, 64) })
}

function sentTo(channel: string, { id, sequence, duplicate }: SendResult): Sent {
  return { channel, id, sequence, duplicate }
}

/** Waits for all promises, even if one rejects, so that no send runs on after the answer. */
async function settleAll<T>(promises: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(promises)
  return Promise.all(promises)
}

function accepted(what: string, sent: readonly Sent[]): CeAnswer {
  const message = sent.length === 1 ? `event ${what}` : `${sent.length} events ${what}`
  return { status: 202, message, data: JSON.stringify({ count: sent.length, events: sent }) }
}

/** The longest `source` and `id` that are kept as they are, in characters. */
const MAX_KEY_CHARACTERS = 256

/**
 * Returns the events with the ids by which the engine recognizes repeats: two events with the same `source` and
 * `id` are the same event (CloudEvents 3.1).
 */
function deduplicated(
  addressed: readonly AddressedEvent[],
  { message_id, deduplicate = true }: { readonly message_id?: string; readonly deduplicate?: boolean },
): readonly AddressedEvent[] {
  if (message_id !== undefined) {
    if (addressed.length > 1) {
      const allowed = 'left out for a batch: the events have a source and an id'
      throw invalidParameters([{ parameter: 'message_id', given: JSON.stringify(message_id), allowed }])
    }
    return addressed.map(({ channel, message }) => {
      const tags = { ...message.tags, message_id }
      return { channel, message: { body: message.body, tags } }
    })
  }
  return deduplicate ? addressed.map(({ channel, message }) => ({ channel, message: keyed(message) })) : addressed
}

function keyed({ body, tags = {} }: MessageInput): MessageInput {
  const { ce_source: source = '', ce_id: id = '' } = tags
  const key = `${source.length} ${source} ${id}`
  const short = key.length <= MAX_KEY_CHARACTERS ? key : createHash('sha256').update(key).digest('base64')
  return { body, tags, deduplicationKey: short }
}
