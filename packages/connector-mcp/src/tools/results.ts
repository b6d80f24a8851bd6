import { Buffer } from 'node:buffer'

import type { ChannelInfo, Tags } from '@signalbox/broker-core'
import { argument } from '@signalbox/http-kit'
import { Type } from 'typebox'

import type { ToolOutcome } from './tool.ts'

/**
 * The shapes that tools return, each with its JSON Schema (specification, "Message and channel shapes returned as JSON
 * text by tools"; M10).
 */

export function channelDescriptor({ name, type, isActive }: ChannelInfo) {
  return { name, type, is_active: isActive }
}

export function channelInfoResult({ name, type, isActive, incoming, outgoing }: ChannelInfo) {
  return { name, type, is_active: isActive, incoming, outgoing }
}

/** The structured content of `channel_info`: the text's fields, and what a queue or an events store holds (M10). */
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

/** A list is its own JSON array as text, and an object around it as structured content (M10). */
export function listOutcome(name: 'channels', list: readonly object[], nextCursor?: string): ToolOutcome {
  return listed(name, JSON.stringify(list), nextCursor)
}

/** As {@link listOutcome}; bodies that are too large to be there twice are in the text alone. */
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

/** The payload of a reply is the text; one that is too large to be there twice is in the text alone. */
export function replyOutcome(reply: string, others: object): ToolOutcome {
  const structuredContent = fitsTwice(reply) ? { reply, ...others } : { ...others, ...BODIES_IN_TEXT }
  return { text: reply, isError: false, structuredContent }
}

/** As {@link replyOutcome}, for a reply that is JSON text. */
export function jsonReplyOutcome(reply: string): ToolOutcome {
  const structuredContent = fitsTwice(reply) ? `{"reply":${reply}}` : BODIES_IN_TEXT
  return { text: reply, isError: false, structuredContent }
}

/** The most bytes of text and structured content together that repeat a body. */
const MAX_REPEATED_BYTES = 65_536

const BODIES_IN_TEXT = { bodies: 'in text' }

function fitsTwice(text: string): boolean {
  // A character has up to three bytes: most texts need not be counted.
  return text.length * 6 <= MAX_REPEATED_BYTES || Buffer.byteLength(text) * 2 <= MAX_REPEATED_BYTES
}

export function objectOutcome(object: object): ToolOutcome {
  return { text: JSON.stringify(object), isError: false, structuredContent: object }
}

/** @param structuredContent A string is JSON text, sent as it is */
export function confirmation(text: string, structuredContent: object | string): ToolOutcome {
  return { text, isError: false, structuredContent }
}

export function failure(text: string): ToolOutcome {
  return { text, isError: true }
}

// ── Output schemas ──────────────────────────────────────────────────────────────────────────────────────────────────

const bodyEncoding = Type.Optional(
  Type.Literal('base64', { description: 'Present when the body is not UTF-8 text: body is then base64.' }),
)

const tagsOutput = Type.Unsafe<Tags>({ type: 'object', additionalProperties: { type: 'string' } })

export const bodiesInText = Type.Optional(
  Type.Literal('in text', { description: 'Present when bodies are too large to be repeated here: the text has them.' }),
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
      sequence: Type.Integer({ minimum: 1, description: 'Position in the channel: 1, 2, 3 …' }),
      timestamp: Type.String({ description: 'When it was stored, ISO 8601.' }),
    }),
  ),
  bodies: bodiesInText,
})

const descriptorFields = {
  name: Type.String(),
  type: argument.channelType('The channel type.'),
  is_active: Type.Boolean({ description: 'Traffic or a subscriber within the last 5 minutes.' }),
}

const nextCursorOutput = Type.Optional(
  Type.String({ description: 'Give it as cursor to get the next page; absent on the last one.' }),
)

export const channelsOutput = Type.Object({
  channels: Type.Array(Type.Object(descriptorFields)),
  next_cursor: nextCursorOutput,
})

export const channelInfoOutput = Type.Object({
  ...descriptorFields,
  incoming: Type.Integer({ minimum: 0, description: 'Messages accepted.' }),
  outgoing: Type.Integer({ minimum: 0, description: 'Messages delivered.' }),
  waiting: count('Of a queue: messages that a receive would return now.'),
  delayed: count('Of a queue: messages that are not visible yet.'),
  in_flight: count('Of a queue: messages that are leased.'),
  dead_lettered: count('Of a queue: messages that moved to a dead-letter queue so far.'),
  first_sequence: count('Of an events store: the sequence of the oldest event; 0 when it is empty.'),
  last_sequence: count('Of an events store: the sequence of the newest event; 0 when it is empty.'),
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
