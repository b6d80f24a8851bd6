import { Buffer, isUtf8 } from 'node:buffer'

import { decodeText } from '@signalbox/broker-core'
import type { MessageContent, ResultLimit, StoredEvent, Tags } from '@signalbox/broker-core'

import { RefusedError } from '../errors.ts'
import type { RequestHold } from '../admission/request-hold.ts'
import { fairTurns } from '../surface/fair-turns.ts'
import { escapedSize, LONG_TEXT_BYTES, LongBytes } from '../surface/text-parts.ts'

/** Messages as JSON. */

/** A body in JSON: text, or base64 if the bytes are not UTF-8. */
export interface BodyText {
  readonly body: string
  readonly body_encoding?: 'base64'
}

/** Returns a body as text, or as base64 if the bytes are not UTF-8. */
export function bodyText(bytes: Uint8Array): BodyText {
  const body = decodeText(bytes)
  if (body !== undefined) return { body }
  return {
    body: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'),
    body_encoding: 'base64',
  }
}

interface MessageShape extends BodyText {
  readonly metadata: string
  readonly tags: Tags
}

interface StoredEventShape extends MessageShape {
  readonly sequence: number
  readonly timestamp: string
}

/** Returns a message as JSON: its body, metadata and tags. */
export function messageShape({ body, metadata, tags }: MessageContent): MessageShape {
  const text = decodeText(body)
  return text === undefined ? { ...bodyText(body), metadata, tags } : { body: text, metadata, tags }
}

/** Returns a stored event as JSON: the message, its sequence and its time. */
export function storedEventShape(event: StoredEvent): StoredEventShape {
  return { ...messageShape(event), sequence: event.sequence, timestamp: isoTime(event.timestamp) }
}

/** Returns a time, given in ms since the epoch, as an ISO 8601 timestamp in UTC. */
export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}

/** A body in a long text ({@link TextParts}). */
export interface LongBodyText {
  readonly body: string | LongBytes
  readonly body_encoding?: 'base64'
}

/** Returns a body as {@link bodyText} does, for a long text: a long body is encoded when the text is written. */
export function longBodyText(bytes: Uint8Array): LongBodyText {
  if (bytes.byteLength < LONG_BODY_BYTES) return bodyText(bytes)
  const body = new LongBytes(bytes)
  return body.isText ? { body } : { body, body_encoding: 'base64' }
}

/** Returns a message as {@link messageShape} does, for a long text. */
export function longMessageShape({ body, metadata, tags }: MessageContent) {
  return { ...longBodyText(body), metadata, tags }
}

/** Smaller bodies are encoded at once, in bytes. */
const LONG_BODY_BYTES = 4_096

/** The names of the members of a message, and its sequence, time and receipt, in bytes. */
const FRAME_BYTES = 160

/** The most bytes of a character in JSON. */
const MAX_ESCAPE = 6

/** A text of more characters is counted. */
const SHORT_CHARACTERS = 64

/** Returns about the size of a message in JSON: exact for long parts, and at least the size of short ones. */
export function messageSizeInJson({ body, metadata, tags }: MessageContent): number {
  let size = FRAME_BYTES + (isUtf8(body) ? escapedSize(body) : Math.ceil(body.byteLength / 3) * 4) + textSize(metadata)
  for (const key of Object.keys(tags)) size += '"":"",'.length + textSize(key) + textSize(tags[key] ?? '')
  return size
}

function textSize(text: string): number {
  return text.length <= SHORT_CHARACTERS ? text.length * MAX_ESCAPE : escapedSize(Buffer.from(text))
}

const ISO_8601 =
  /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?$/

/** The format that {@link parseTimestamp} accepts. */
const TIMESTAMP_FORM =
  'an ISO 8601 timestamp with date, time and time zone, such as "2026-01-31T09:30Z" or "2026-01-31T09:30:00.250+01:00"'

/** Returns the format that {@link parseTimestamp} accepts, with the reason if the text only lacks its time zone. */
export function timestampRefusal(text: string): string {
  const parts = ISO_8601.exec(text)
  return parts !== null && parts[6] === undefined
    ? `${TIMESTAMP_FORM} (it has no time zone, and so could be several moments; add Z for UTC)`
    : TIMESTAMP_FORM
}

/**
 * Returns the time in ms since the epoch, or `undefined` if the text is not a complete ISO 8601 timestamp. Seconds,
 * their fraction, and the colon of the offset are optional. The time zone is required, because caller and server
 * could mean different moments without it.
 *
 * Fractions of a millisecond are rounded up, so that "from this time on" never includes an earlier event.
 */
export function parseTimestamp(text: string): number | undefined {
  const parts = ISO_8601.exec(text)
  if (!parts) return undefined
  const [, date = '', hours, minutes, seconds = '00', fraction = '', zone] = parts
  if (zone === undefined || !isDay(date)) return undefined
  const offset = zone === 'Z' || zone.includes(':') ? zone : `${zone.slice(0, 3)}:${zone.slice(3)}`
  const milliseconds = Date.parse(
    `${date}T${hours}:${minutes}:${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}${offset}`,
  )
  return /[1-9]/.test(fraction.slice(3)) ? milliseconds + 1 : milliseconds
}

/** Returns `true` if the day exists: `Date` accepts February 30 as March 2. */
function isDay(date: string): boolean {
  const midnight = new Date(`${date}T00:00:00Z`)
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(date)
}

/** The limits that a read for an answer counts in. */
export type ReadingHold = Pick<RequestHold, 'account' | 'charge' | 'discharge'>

/**
 * Returns the limit of a read for one answer. A large message that does not fit into the budgets of the caller is
 * refused before it is read: memory for ten megabytes takes many milliseconds. Waits for the dear work of the caller
 * before it.
 * @param maxBytes The size of the messages in JSON, in bytes
 * @param onMore Called if there are messages that do not fit
 */
export async function answerBound(
  maxBytes: number,
  hold: ReadingHold | undefined,
  onMore: () => void,
): Promise<ResultLimit> {
  if (hold === undefined) return { maxBytes, sizeOf: messageSizeInJson, onMore }
  const { key } = hold.account
  const turn = fairTurns.turnAfterOthers(key)
  if (turn !== undefined) await turn
  // The bytes that are being read: otherwise many reads at the same time would each find the budget unused.
  let admitted = 0
  // The answer with the message is charged when it is built.
  const onFirst = (): void => {
    if (admitted > 0) hold.discharge(admitted)
    admitted = 0
  }
  return {
    maxBytes,
    onMore,
    onFirst,
    admit(bytes) {
      // An earlier message may have been gone before it was read.
      onFirst()
      const refusal = hold.charge(bytes)
      if (refusal !== undefined) throw new RefusedError(refusal)
      admitted += bytes
    },
    sizeOf(message) {
      const bytes = messageSizeInJson(message)
      if (bytes >= LONG_TEXT_BYTES) fairTurns.restAfter(key, bytes)
      return bytes
    },
  }
}
