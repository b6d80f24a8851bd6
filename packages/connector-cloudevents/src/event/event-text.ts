import type { ChannelType, Message } from '@signalbox/broker-core'

import { bodyMembers, dataMember } from './data-form.ts'
import { eventOf } from './event-tags.ts'

/** A message as a CloudEvent in JSON. */
export interface EventText {
  /** The event in JSON, on one line. */
  readonly text: string
  /** `true` if the message was sent as a CloudEvent. */
  readonly isEvent: boolean
}

/** The `type` of events that are created from other messages. */
export const MESSAGE_TYPE = 'signalbox.message'

/**
 * Returns the JSON form of the event that a message carries: unchanged attributes, and data in the original bytes.
 * Another message becomes an event of {@link MESSAGE_TYPE}. Metadata is in the extension `brokermetadata`, and tags
 * that are not attributes are in `brokertags`, as JSON text. `extensions` override the event's own.
 */
export function cloudEventText(
  pattern: ChannelType,
  message: Message,
  extensions: Readonly<Record<string, string>> = {},
): EventText {
  const carried = eventOf(message.tags)
  const { body, metadata } = message
  const more: Record<string, string> = {}
  const otherTags = carried?.otherTags ?? message.tags
  if (metadata !== '') more['brokermetadata'] = metadata
  if (Object.keys(otherTags).length > 0) more['brokertags'] = JSON.stringify(otherTags)
  Object.assign(more, extensions)

  const members: string[] = []
  if (carried === undefined) {
    const attributes = {
      specversion: '1.0',
      id: message.id,
      source: `/signalbox/${pattern}/${encodeURI(message.channel).replace(/[?#[\]]/g, encodeURIComponent)}`,
      type: MESSAGE_TYPE,
      subject: message.channel,
      time: new Date(message.timestamp).toISOString(),
    }
    for (const [name, text] of Object.entries(attributes)) members.push(`"${name}":${JSON.stringify(text)}`)
  } else {
    const { texts, types } = carried.attributes
    for (const [name, text] of texts) {
      if (!Object.hasOwn(more, name)) members.push(`"${name}":${types.has(name) ? text : JSON.stringify(text)}`)
    }
  }
  for (const [name, text] of Object.entries(more)) members.push(`"${name}":${JSON.stringify(text)}`)
  if (carried === undefined) members.push(...bodyMembers(body))
  else {
    const data = dataMember(body, carried.form, carried.attributes.texts.get('datacontenttype'))
    if (data !== '') members.push(data)
  }
  return { text: `{${members.join(',')}}`, isEvent: carried !== undefined }
}
