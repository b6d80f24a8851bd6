import { Buffer } from 'node:buffer'

import type { ChannelType, Message } from '@signalbox/broker-core'
import type { SseEvent } from '@signalbox/http-kit'
import { eventText as sseText } from '@signalbox/http-kit'

import { cloudEventText } from '../event/event-text.ts'

/** One server-sent event as it goes over the wire. */
export type SseFrame = Buffer

/** One message goes to many subscribers, so its frame is made once, and gone with the message. */
const known = new WeakMap<Message, SseFrame>()

/** The frame of an event, or of an entry of an events store, whose `id:` is then its sequence. */
export function messageFrame(pattern: ChannelType, message: Message, sequence?: number): SseFrame {
  const before = known.get(message)
  if (before !== undefined) return before
  const frame = makeFrame(pattern, message, {}, sequence)
  known.set(message, frame)
  return frame
}

/** The frame of a command or query, which tells its one subscriber how to answer. */
export function requestFrame(
  pattern: ChannelType,
  message: Message,
  extensions: Readonly<Record<string, string>>,
): SseFrame {
  return makeFrame(pattern, message, extensions)
}

function makeFrame(
  pattern: ChannelType,
  message: Message,
  extensions: Readonly<Record<string, string>>,
  sequence?: number,
): SseFrame {
  const { text, isEvent } = cloudEventText(pattern, message, extensions)
  const id = sequence === undefined ? {} : { id: String(sequence) }
  return Buffer.from(sseText({ event: isEvent ? 'cloudevent' : 'message', ...id, data: text }))
}

/** The frame that tells a subscriber of a failure; the data has the shape of the error answers. */
export function errorFrame(code: string, message: string, details: Readonly<Record<string, unknown>> = {}): SseFrame {
  return Buffer.from(sseText(errorEvent(code, message, details)))
}

function errorEvent(code: string, message: string, details: Readonly<Record<string, unknown>> = {}): SseEvent {
  return { event: 'error', data: JSON.stringify({ is_error: true, message, data: { code, ...details } }) }
}

/** The last event for a subscriber that took nothing of what waited for it. */
export const SLOW_CONSUMER: SseEvent = errorEvent(
  'SLOW_CONSUMER',
  'slow consumer: the subscriber did not take what was sent to it; subscribe again, and read faster',
)
