import { Buffer } from 'node:buffer'

import type { ChannelInfo, Tags } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import type { ToolOutcome } from './tool.ts'

/**
 * The shapes that tools return, each with its JSON Schema.
 */

export function channelDescriptor({ name, type, isActive }: ChannelInfo) {
  return { name, type, is_active: isActive }
}

export function channelInfoResult({ name, type, isActive, incoming, outgoing }: ChannelInfo) {
  return { name, type, is_active: isActive, incoming, outgoing }
}

/**
 * Returns the structured content of `channel_info`: the fields of the text, and the counts of a queue or an events
 * store.
 */
export function channelInfoStructure(info: ChannelInfo) {
  const { queue, eventsStore } = info
  return {
    ...channelInfoResult(info),
    ...(queue === undefined
      ? {}
      : {
          waiting: queue.waiting,
          delayed: queue.delayed,
          in_flight: queue.inFlight,
          dead_lettered: queue.deadLettered,
        }),
    ...(eventsStore === undefined
      ? {}
      : { first_sequence: eventsStore.firstSequence, last_sequence: eventsStore.lastSequence }),
  }
}

/** Returns a list as a JSON array in the text, and as an object in the structured content. */
export function listOutcome(name: 'channels', list: readonly object[], nextCursor?: string): ToolOutcome {
  return listed(name, JSON.stringify(list), nextCursor)
}

/** Returns messages as {@link listOutcome} does. Bodies that are too large to be repeated are in the text only. */
export function messagesOutcome(name: 'messages' | 'events', list: readonly { readonly body: string }[]): ToolOutcome {
  const text = JSON.stringify(list)
  if (fitsTwice(text)) return listed(name, text)
  const rest = list.map(({ body: _body, ...others }) => others)
  return { text, isError: false, structuredContent: { [name]: rest, ...BODIES_IN_TEXT } }
}

function listed(name: string, text: string, nextCursor?: string): ToolOutcome {
  const more = nextCursor === undefined ? '' : `,"next_cursor":${JSON.stringify(nextCursor)}`
  return { text, isError: false, structuredContent: `{"${name}":${text}${more}}` }
}

/** Returns the payload of a reply as the text. A payload that is too large to be repeated is in the text only. */
export function replyOutcome(reply: string, others: object): ToolOutcome {
  const structuredContent = fitsTwice(reply) ? { reply, ...others } : { ...others, ...BODIES_IN_TEXT }
  return { text: reply, isError: false, structuredContent }
}

/** Returns a reply that is JSON text, as {@link replyOutcome} does. */
export function jsonReplyOutcome(reply: string): ToolOutcome {
  const structuredContent = fitsTwice(reply) ? `{"reply":${reply}}` : BODIES_IN_TEXT
  return { text: reply, isError: false, structuredContent }
}

/** The most bytes of text and structured content that repeat a body. */
const MAX_REPEATED_BYTES = 65_536

const BODIES_IN_TEXT = { bodies: 'in text' }

function fitsTwice(text: string): boolean {
  // A character has up to three bytes, so the bytes of most texts need not be counted.
  return text.length * 6 <= MAX_REPEATED_BYTES || Buffer.byteLength(text) * 2 <= MAX_REPEATED_BYTES
}

export function objectOutcome(object: object): ToolOutcome {
  return { text: JSON.stringify(object), isError: false, structuredContent: object }
}

/** @param structuredContent An object, or JSON text that is sent unchanged */
export function confirmation(text: string, structuredContent: object | string): ToolOutcome {
  return { text, isError: false, structuredContent }
}

export function failure(text: string): ToolOutcome {
  return { text, isError: true }
}

// ── Output schemas ──────────────────────────────────────────────────────────────────────────────────────────────────

const bodyEncoding = Type.Optional(
  Type.Literal('base64', { description: 'Present if the body is not UTF-8 text; body is then base64.' }),
)

const tagsOutput = Type.Unsafe<Tags>({ type: 'object', additionalProperties: { type: 'string' } })

export const bodiesInText = Type.Optional(
  Type.Literal('in text', {
    description: 'Present if bodies are too large to be repeated here; the text contains them.',
  }),
)

const messageFields = {
  body: Type.Optional(Type.String()),
  body_encoding: bodyEncoding,
  metadata: Type.String(),
  tags: tagsOutput,
}

export const messagesOutput = Type.Object({ messages: Type.Array(Type.Object(messageFields)), bodies: bodiesInText })

export const eventsOutput = Type.Object({
  events: Type.Array(
    Type.Object({
      ...messageFields,
      sequence: Type.Integer({ minimum: 1, description: 'The sequence number in the channel: 1, 2, 3 …' }),
      timestamp: Type.String({ description: 'The time at which the event was stored, ISO 8601.' }),
    }),
  ),
  bodies: bodiesInText,
})

const descriptorFields = {
  name: Type.String(),
  type: argument.channelType('The channel type.'),
  is_active: Type.Boolean({
    description: 'True if the channel had messages or a subscriber within the last 5 minutes.',
  }),
}

const nextCursorOutput = Type.Optional(
  Type.String({ description: 'The cursor of the next page; absent on the last page.' }),
)

export const channelsOutput = Type.Object({
  channels: Type.Array(Type.Object(descriptorFields)),
  next_cursor: nextCursorOutput,
})

export const channelInfoOutput = Type.Object({
  ...descriptorFields,
  incoming: Type.Integer({ minimum: 0, description: 'Messages accepted.' }),
  outgoing: Type.Integer({ minimum: 0, description: 'Messages delivered.' }),
  waiting: count('Messages that a receive would return now. For queues.'),
  delayed: count('Messages that are not visible yet. For queues.'),
  in_flight: count('Messages that are leased. For queues.'),
  dead_lettered: count('Messages that have moved to a dead-letter queue. For queues.'),
  first_sequence: count('The sequence of the oldest event; 0 if there is none. For events stores.'),
  last_sequence: count('The sequence of the newest event; 0 if there is none. For events stores.'),
})

function count(description: string) {
  return Type.Optional(Type.Integer({ minimum: 0, description }))
}

export const replyOutput = Type.Object({
  reply: Type.Optional(Type.String({ description: 'The payload of the reply.' })),
  bodies: bodiesInText,
  body_encoding: bodyEncoding,
  metadata: Type.String(),
  tags: tagsOutput,
})
