import { encodeText } from '@signalbox/broker-core'
import type { Steps } from '@signalbox/http-kit'

import type { ServerSentEvent } from './event-reader.ts'
import type { StreamFailure } from './failures.ts'
import type { EndMark } from './link/messages.ts'

/** The SSE event name of each envelope type. Any other type has the name `message`. */
const SSE_EVENTS: ReadonlyMap<string, string> = new Map([
  ['status_update', 'task.status'],
  ['artifact', 'task.artifact'],
  ['done', 'task.done'],
  ['error', 'task.error'],
])

/** The envelope type of each SSE event that has its own. */
export const ENVELOPE_TYPES: ReadonlyMap<string, string> = new Map(
  [...SSE_EVENTS].map(([type, event]) => [event, type]),
)

/** The text before and after the stream's id in an event of one type. */
interface EventTemplate {
  readonly beforeId: string
  readonly afterId: string
}

const TEMPLATES: ReadonlyMap<string, EventTemplate> = new Map(
  [...SSE_EVENTS.keys(), 'message'].map((type) => [type, templateOf(type, JSON.stringify(type))]),
)

/**
 * Returns one event in the wire format for the client. It runs for each event of each stream, so it
 * does not validate: the event's name is a constant, and the payload is one line.
 * @param typeText JSON text of a type that is not one of the five
 * @param payloadText JSON text of the payload, without line ends
 */
export function clientEventText(streamId: string, type: string, payloadText: string, typeText?: string): string {
  const { beforeId, afterId } = TEMPLATES.get(type) ?? templateOf(type, typeText ?? JSON.stringify(type))
  return `${beforeId}${streamId}${afterId}${payloadText}}\n\n`
}

/** Returns one event as {@link clientEventText} does, around the bytes of its payload. */
export function clientEventBytes(streamId: string, type: 'done' | 'error', payload: Uint8Array): readonly Uint8Array[] {
  const { beforeId, afterId } = templateOf(type, JSON.stringify(type))
  return [encodeText(`${beforeId}${streamId}${afterId}`), payload, encodeText('}\n\n')]
}

function templateOf(type: string, typeText: string): EventTemplate {
  return {
    beforeId: `event: ${SSE_EVENTS.get(type) ?? 'message'}\ndata: {"stream_id":"`,
    afterId: `","type":${typeText},"payload":`,
  }
}

/** The most bytes that the envelope adds to an agent's event. */
export const EVENT_ENVELOPE_BYTES = 1_024

/** Text for the caller, with one character for each byte. The last text of a stream has an `end`. */
export interface ClientText {
  readonly text: string
  readonly end: EndMark | undefined
}

/** One large event for the caller, in parts: joining them would block the event loop. */
export interface ClientBytes {
  readonly parts: readonly Uint8Array[]
  readonly end: EndMark
}

/** Converts an agent's events into the caller's. Do not call it again after a text with an `end`. */
export interface EventConverter {
  /** Converts an event; undefined if there is nothing to send for it. */
  next(event: ServerSentEvent): ClientText | undefined
  /** Converts an event that the response ended in, without its blank line; undefined if it is incomplete. */
  cutOff(event: ServerSentEvent): ClientText | undefined
  /**
   * Returns an event that was held back for too long while the agent is silent. Called from time to time.
   * @default none
   */
  quiet?(now: number): ClientText | undefined
  /** True while the last event is held back. @default never */
  readonly holds?: boolean
  /** Returns the event that is held back; undefined if there is none. @default none */
  rest?(): ClientText | undefined
  /** Converts the body of an answer that was no event stream, a piece of work at a time. */
  plainAnswer(body: Uint8Array): Steps<ClientText | ClientBytes>
  /** Returns the last text for a complete response without a terminal event. */
  ended(): ClientText
  /** Returns the last text for a response that broke off. */
  broken(): ClientText
  /** Returns the last text for an error of Signalbox. */
  failure(failure: StreamFailure): ClientText
}

/** Writes the errors with which Signalbox ends a stream, in the encoding of the stream's events. */
export interface FailureEncoder {
  /** Returns the last event of the stream, and its code. */
  failure(failure: StreamFailure): { readonly text: string; readonly code: number }
}

/** Returns the encoder of the gateway's own events. */
export function ownFailures(streamId: string): FailureEncoder {
  return {
    failure: (failure) => ({ text: failureText(streamId, failure), code: failure.code }),
  }
}

/** Returns the `task.error` event for an error that Signalbox raises. */
export function failureText(streamId: string, { code, message }: StreamFailure): string {
  return clientEventText(streamId, 'error', JSON.stringify({ code, message }))
}
