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

/** A list is its own JSON array as text, and an object around it as structured content (M10). */
export function listOutcome(
  name: 'messages' | 'events' | 'channels' | 'agents',
  list: readonly object[],
  nextCursor?: string,
): ToolOutcome {
  const more = nextCursor === undefined ? {} : { next_cursor: nextCursor }
  return { text: JSON.stringify(list), isError: false, structuredContent: { [name]: list, ...more } }
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

export const tagsOutput = Type.Unsafe<Tags>({ type: 'object', additionalProperties: { type: 'string' } })

const messageFields = {
  body: Type.String(),
  body_encoding: bodyEncoding,
  metadata: Type.String(),
  tags: tagsOutput,
}

export const messagesOutput = Type.Object({ messages: Type.Array(Type.Object(messageFields)) })

export const eventsOutput = Type.Object({
  events: Type.Array(
    Type.Object({
      ...messageFields,
      sequence: Type.Integer({ minimum: 1, description: 'Position in the channel: 1, 2, 3 …' }),
      timestamp: Type.String({ description: 'When it was stored, ISO 8601.' }),
    }),
  ),
})

const descriptorFields = {
  name: Type.String(),
  type: argument.channelType('The channel type.'),
  is_active: Type.Boolean({ description: 'Traffic or a subscriber within the last 5 minutes.' }),
}

export const nextCursorOutput = Type.Optional(
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
})

export const replyOutput = Type.Object({
  reply: Type.String({ description: 'The payload of the reply.' }),
  body_encoding: bodyEncoding,
  metadata: Type.String(),
  tags: tagsOutput,
})
