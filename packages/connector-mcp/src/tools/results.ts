import { Buffer } from 'node:buffer'

import type { ChannelInfo, Tags } from '@signalbox/broker-core'
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

const bodyEncoding = Type.Optional(constant('base64'))

/** A text that is always the same. `Type.Literal` would repeat its type. */
function constant<Value extends string>(value: Value) {
  return Type.Unsafe<Value>({ const: value })
}

const tagsOutput = Type.Unsafe<Tags>({ type: 'object' })

/** Present if bodies are too large to be repeated in the structured content. */
export const bodiesInText = Type.Optional(constant('in text'))

const messageFields = {
  body: Type.Optional(Type.String()),
  body_encoding: bodyEncoding,
  metadata: Type.String(),
  tags: tagsOutput,
}

export const messagesOutput = Type.Object({
  messages: Type.Array(Type.Partial(Type.Object(messageFields))),
  bodies: bodiesInText,
})

/** Messages that may be leased. */
export const leasedMessagesOutput = Type.Object({
  messages: Type.Array(
    Type.Partial(Type.Object({ ...messageFields, receipt: Type.String(), receive_count: Type.Integer() })),
  ),
  bodies: bodiesInText,
})

export const eventsOutput = Type.Object({
  events: Type.Array(
    Type.Partial(Type.Object({ ...messageFields, sequence: Type.Integer(), timestamp: Type.String() })),
  ),
  bodies: bodiesInText,
})

const descriptorFields = {
  name: Type.String(),
  type: Type.String(),
  is_active: Type.Boolean(),
}

/** The cursor of a list; absent on the last page. */
export const nextCursorOutput = Type.Optional(Type.String())

export const channelsOutput = Type.Object({
  channels: Type.Array(Type.Partial(Type.Object(descriptorFields))),
  next_cursor: nextCursorOutput,
})

export const channelInfoOutput = Type.Object({
  ...descriptorFields,
  incoming: Type.Integer(),
  outgoing: Type.Integer(),
  waiting: Type.Optional(Type.Integer()),
  delayed: Type.Optional(Type.Integer()),
  in_flight: Type.Optional(Type.Integer()),
  dead_lettered: Type.Optional(Type.Integer()),
  first_sequence: Type.Optional(Type.Integer()),
  last_sequence: Type.Optional(Type.Integer()),
})

export const replyOutput = Type.Object({
  reply: Type.Optional(Type.String()),
  bodies: bodiesInText,
  body_encoding: bodyEncoding,
  metadata: Type.String(),
  tags: tagsOutput,
})
