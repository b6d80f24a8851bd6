import type { ChannelType, Message, Tags } from '@signalbox/broker-core'
import { traceContextOf, traceTags } from '@signalbox/broker-core/internal'
import { LONG_TEXT_BYTES, TextParts } from '@signalbox/http-kit/internal'

import { bodyMembers, dataMember } from './data-form.ts'
import type { AttributeType } from './attributes.ts'
import type { CarriedEvent } from './event-tags.ts'
import { eventOf } from './event-tags.ts'

/** A message as a CloudEvent in JSON. */
interface EventText {
  /** The event in JSON, on one line. */
  readonly text: string
  /** `true` if the message was sent as a CloudEvent. */
  readonly isEvent: boolean
}

/** A message as a CloudEvent in JSON, in parts if it is long. */
interface LongEventText {
  readonly text: string | TextParts
  readonly isEvent: boolean
}

/** The `type` of events that are created from other messages. */
export const MESSAGE_TYPE = 'signalbox.message'

/** The attributes of the event that a message carries, or that is created from it. */
interface OutgoingAttributes {
  /** The attributes with the extensions of the broker, as text. */
  readonly texts: ReadonlyMap<string, string>
  /** The types of the attributes that are not strings. */
  readonly types: ReadonlyMap<string, AttributeType>
  /** The event, if the message was sent as one. */
  readonly carried: CarriedEvent | undefined
}

const NO_TYPES: ReadonlyMap<string, AttributeType> = new Map()

/**
 * Returns the attributes of the event that a message carries, unchanged. Another message becomes an event of
 * {@link MESSAGE_TYPE}. Metadata is in the extension `brokermetadata`, and tags that are not attributes are in
 * `brokertags`, as JSON text. `extensions` override the event's own.
 */
export function outgoingAttributes(
  pattern: ChannelType,
  message: Message,
  extensions: Readonly<Record<string, string>> = {},
): OutgoingAttributes {
  const carried = eventOf(message.tags)
  const { metadata } = message
  const more: Record<string, string> = {}
  const otherTags = carried?.otherTags ?? message.tags
  if (metadata !== '') more['brokermetadata'] = metadata
  if (Object.keys(otherTags).length > 0) more['brokertags'] = JSON.stringify(otherTags)
  if (carried?.attributes.texts.has('traceparent') !== true) Object.assign(more, traceExtensions(message.tags))
  Object.assign(more, extensions)

  const texts = new Map<string, string>()
  let types = NO_TYPES
  if (carried === undefined) {
    texts.set('specversion', '1.0')
    texts.set('id', message.id)
    texts.set('source', `/signalbox/${pattern}/${encodeURI(message.channel).replace(/[?#[\]]/g, encodeURIComponent)}`)
    texts.set('type', MESSAGE_TYPE)
    texts.set('subject', message.channel)
    texts.set('time', new Date(message.timestamp).toISOString())
  } else {
    for (const [name, text] of carried.attributes.texts) if (!Object.hasOwn(more, name)) texts.set(name, text)
    types = carried.attributes.types
  }
  for (const [name, text] of Object.entries(more)) texts.set(name, text)
  return {
    texts,
    types: Object.keys(more).some((name) => types.has(name)) ? withoutTypesOf(types, more) : types,
    carried,
  }
}

/** Returns the creation context of a message, as the extensions of CloudEvents for it. */
function traceExtensions(tags: Tags): Readonly<Record<string, string>> {
  const { traceparent, tracestate } = tags
  const context = traceparent === undefined ? undefined : traceContextOf(traceparent, tracestate)
  return context === undefined ? {} : traceTags(context)
}

/** An extension of the broker is a string, also if it replaces an attribute of another type. */
function withoutTypesOf(
  types: ReadonlyMap<string, AttributeType>,
  names: Readonly<Record<string, string>>,
): ReadonlyMap<string, AttributeType> {
  return new Map([...types].filter(([name]) => !Object.hasOwn(names, name)))
}

/** Returns the JSON form of the event of a message: its {@link outgoingAttributes}, and data in the original bytes. */
export function cloudEventText(
  pattern: ChannelType,
  message: Message,
  extensions: Readonly<Record<string, string>> = {},
): EventText {
  const { text, isEvent } = longEventText(pattern, message, extensions)
  return { text: String(text), isEvent }
}

/** Returns the JSON form of an event as {@link cloudEventText} does. A long one is escaped when it is written. */
export function longEventText(
  pattern: ChannelType,
  message: Message,
  extensions: Readonly<Record<string, string>> = {},
): LongEventText {
  const { texts, types, carried } = outgoingAttributes(pattern, message, extensions)
  const { body } = message
  const data =
    carried === undefined
      ? bodyMembers(body)
      : dataMember(body, carried.form, carried.attributes.texts.get('datacontenttype'))
  const isEvent = carried !== undefined
  const isLong = typeof data !== 'string' || [...texts.values()].some((text) => text.length >= LONG_TEXT_BYTES)
  if (!isLong) {
    const members: string[] = []
    for (const [name, text] of texts) members.push(memberOf(name, text, types))
    if (data !== '') members.push(data)
    return { text: `{${members.join(',')}}`, isEvent }
  }
  const text = new TextParts()
  for (const [name, value] of texts) {
    text.add(text.isEmpty ? '{' : ',')
    if (value.length < LONG_TEXT_BYTES) text.add(memberOf(name, value, types))
    else text.add(`"${name}":`).addQuoted(value)
  }
  if (data !== '') text.add(',').add(data)
  return { text: text.add('}'), isEvent }
}

function memberOf(name: string, text: string, types: ReadonlyMap<string, AttributeType>): string {
  return `"${name}":${types.has(name) ? text : JSON.stringify(text)}`
}
