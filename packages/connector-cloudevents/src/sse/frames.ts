import { Buffer } from 'node:buffer'

import type { ChannelType, Message } from '@signalbox/broker-core'
import type { SseEvent } from '@signalbox/http-kit'
import { eventText as sseText, TextParts } from '@signalbox/http-kit/internal'

import { longEventText } from '../event/event-text.ts'

/** One server-sent event in wire format. A long one is escaped when it is written. */
export type SseFrame = Buffer | TextParts

/** An event of more bytes is escaped for each subscriber, in turns; smaller ones once for all, in some milliseconds. */
const FULL_FRAME_BYTES = 262_144

/** Returns the bytes that a frame keeps in memory. */
export function frameBytes(frame: SseFrame): number {
  return frame instanceof TextParts ? frame.heldBytes : frame.byteLength
}

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
  const { text, isEvent } = longEventText(pattern, message, extensions)
  const event = isEvent ? 'cloudevent' : 'message'
  const id = sequence === undefined ? {} : { id: String(sequence) }
  if (typeof text === 'string' || text.heldBytes <= FULL_FRAME_BYTES) {
    return Buffer.from(sseText({ event, ...id, data: String(text) }))
  }
  // An event in JSON has no line ends.
  return new TextParts()
    .add(sseText({ event, ...id, data: '' }).slice(0, -2))
    .add(text)
    .add('\n\n')
}

/** Returns the frame that reports a failure to a subscriber. Its data has the form of an error answer. */
export function errorFrame(code: string, message: string, details: Readonly<Record<string, unknown>> = {}): Buffer {
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
