import { Buffer } from 'node:buffer'

import type { ChannelType, Message } from '@signalbox/broker-core'
import type { SseEvent } from '@signalbox/http-kit'
import { eventText as sseText } from '@signalbox/http-kit'

import { cloudEventText } from '../event/event-text.ts'

/** One server-sent event in wire format. */
export type SseFrame = Buffer

/** A cache: one message goes to many subscribers, so its frame is built once. It is released with the message. */
const known = new WeakMap<Message, SseFrame>()

/** Returns the frame of an event or of a stored event. The `id:` of a stored event is its sequence. */
export function messageFrame(pattern: ChannelType, message: Message, sequence?: number): SseFrame {
  const before = known.get(message)
  if (before !== undefined) return before
  const frame = makeFrame(pattern, message, {}, sequence)
  known.set(message, frame)
  return frame
}

/** Returns the frame of a command or query, with the id for its answer. */
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

/** Returns the frame that reports a failure to a subscriber. Its data has the form of an error answer. */
export function errorFrame(code: string, message: string, details: Readonly<Record<string, unknown>> = {}): SseFrame {
  return Buffer.from(sseText(errorEvent(code, message, details)))
}

function errorEvent(code: string, message: string, details: Readonly<Record<string, unknown>> = {}): SseEvent {
  return { event: 'error', data: JSON.stringify({ is_error: true, message, data: { code, ...details } }) }
}

/** The last event for a subscriber that does not read. */
export const SLOW_CONSUMER: SseEvent = errorEvent(
  'SLOW_CONSUMER',
  'slow consumer: the subscriber did not read the events in time; subscribe again, and read faster',
)
