import type { ChannelInfo, Tags } from '@signalbox/broker-core'
import { decodeText } from '@signalbox/broker-core'
import { LARGE_BODY_BYTES, TextParts } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'

import { channelSettingsOutput } from './channel-settings.ts'
import { fitsTwice } from './answer-size.ts'
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

/** Returns the counts of a queue or an events store, by name. */
export function storedCounts({ queue, eventsStore }: ChannelInfo): Readonly<Record<string, number>> {
  return {
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

/** The most entries of a list without `limit`. */
export const MAX_LISTED = 500

/** The part of a list that is on later pages. */
export interface LaterPages {
  readonly cursor: string
  /** The number of entries on later pages; the list of agents counts 10,000 of them. */
  readonly leftOut: number
}

/** Returns a list, given as a JSON array, as the text, and as an object in the structured content. */
export function listOutcome(
  name: 'channels' | 'agents',
  list: string | TextParts,
  later: LaterPages | undefined,
): ToolOutcome {
  const content = new TextParts().add(`{"${name}":`).add(list)
  if (later === undefined) return { text: list, isError: false, structuredContent: content.add('}').shortest }
  const { cursor, leftOut } = later
  const more = JSON.stringify({ more: true, left_out: leftOut, cursor, next_cursor: cursor })
  return {
    text: list,
    hint: `This page leaves out ${leftOut} ${name}. For the next page, repeat the call with the cursor ${JSON.stringify(cursor)}.`,
    isError: false,
    structuredContent: content.add(`,${more.slice(1)}`).shortest,
  }
}

/** The parts of a reply in addition to its body. */
interface ReplyParts {
  readonly body_encoding?: 'base64'
  readonly metadata: string
  readonly tags: Tags
}

/**
 * Returns the payload of a reply as the text, and its other parts in a hint. A payload that is too large to be repeated
 * is in the text only.
 */
export function replyOutcome(reply: string, parts: ReplyParts): ToolOutcome {
  const structuredContent = fitsTwice(reply) ? { reply, ...parts } : { ...parts, ...BODIES_IN_TEXT }
  const { body_encoding, metadata, tags } = parts
  const hints = [
    ...(body_encoding === undefined ? [] : ['The reply is not UTF-8 text, so it is shown as base64.']),
    ...(metadata === '' ? [] : [`Its metadata: ${metadata}`]),
    ...(Object.keys(tags).length === 0 ? [] : [`Its tags: ${JSON.stringify(tags)}`]),
  ]
  const hint = hints.length === 0 ? undefined : hints.join('\n')
  return { text: reply, hint, isError: false, structuredContent }
}

/** Returns a reply that is JSON text, as {@link replyOutcome} does. */
export function jsonReplyOutcome(reply: Uint8Array): ToolOutcome {
  if (reply.byteLength > LARGE_BODY_BYTES) {
    return { text: new TextParts().add(reply), isError: false, structuredContent: BODIES_IN_TEXT }
  }
  const text = decodeText(reply) ?? ''
  return { text, isError: false, structuredContent: fitsTwice(text) ? `{"reply":${text}}` : BODIES_IN_TEXT }
}

const BODIES_IN_TEXT = { bodies: 'in text', note: 'The reply is large, so it is only in the text of this result.' }

export function objectOutcome(object: object): ToolOutcome {
  return { text: JSON.stringify(object), isError: false, structuredContent: object }
}

/** @param structuredContent An object, or JSON text that is sent unchanged */
export function confirmation(text: string, structuredContent: object | string): ToolOutcome {
  return { text, isError: false, structuredContent }
}

/** Returns a confirmation with a hint, which the structured content repeats. */
export function notedConfirmation(text: string, content: object, hint: string | undefined): ToolOutcome {
  return { text, hint, isError: false, structuredContent: { ...content, note: hint } }
}

export function failure(text: string): ToolOutcome {
  return { text, isError: true }
}

// ── Output schemas ──────────────────────────────────────────────────────────────────────────────────────────────────

const bodyEncoding = Type.Optional(constant('base64'))

/** A value that is always the same. `Type.Literal` would repeat its type. */
function constant<Value extends string | true>(value: Value) {
  return Type.Unsafe<Value>({ const: value })
}

const tagsOutput = Type.Unsafe<Tags>({ type: 'object' })

/** Present if bodies are too large to be repeated in the structured content. */
export const bodiesInText = Type.Optional(constant('in text'))

/** `true` if messages or entries are missing. */
export const moreOutput = Type.Optional(constant(true))

/** The hint of the second text. */
export const noteOutput = Type.Optional(Type.String())

export const messageFields = {
  body: Type.Optional(Type.String()),
  body_encoding: bodyEncoding,
  metadata: Type.String(),
  tags: tagsOutput,
}

export const eventsOutput = Type.Object({
  events: Type.Array(
    Type.Partial(Type.Object({ ...messageFields, sequence: Type.Integer(), timestamp: Type.String() })),
  ),
  bodies: bodiesInText,
  more: moreOutput,
  note: noteOutput,
})

const descriptorFields = {
  name: Type.String(),
  type: Type.String(),
  is_active: Type.Boolean(),
}

/** The members of a list; absent on the last page. `next_cursor`, which equals `cursor`, is for older clients. */
export const laterPagesOutput = {
  more: moreOutput,
  left_out: Type.Optional(Type.Integer()),
  cursor: Type.Optional(Type.String()),
}

export const channelsOutput = Type.Object({
  channels: Type.Array(Type.Partial(Type.Object(descriptorFields))),
  ...laterPagesOutput,
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
  ...channelSettingsOutput,
})

export const replyOutput = Type.Object({
  reply: Type.Optional(Type.String()),
  bodies: bodiesInText,
  body_encoding: bodyEncoding,
  metadata: Type.String(),
  tags: tagsOutput,
})
