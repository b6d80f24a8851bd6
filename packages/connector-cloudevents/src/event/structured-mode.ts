import { Buffer, isUtf8 } from 'node:buffer'

import { shownText } from '@signalbox/broker-core/internal'
import type { Steps } from '@signalbox/http-kit'
import type { ExceededLimit, MemberSink, ScanLimits } from '@signalbox/http-kit/internal'
import {
  checkJson,
  encodedInSteps,
  isJsonObject,
  LARGE_BODY_BYTES,
  limitText,
  readJson,
  scanJsonInSteps,
  scanLimits,
} from '@signalbox/http-kit/internal'

import { CeError } from '../errors.ts'
import {
  assertAttributeName,
  assertAttributes,
  CORE_ATTRIBUTES,
  invalidEvent,
  MAX_ATTRIBUTES,
  tooManyAttributes,
} from './attributes.ts'
import type { Attributes, AttributeType, IncomingEvent } from './attributes.ts'
import type { DataForm } from './data-form.ts'
import { isJsonType } from './data-form.ts'
import { isIntegerText, tagsOf } from './event-tags.ts'

/** The most events in one batch. */
const MAX_BATCH_EVENTS = 1_000

/** Limits of the JSON text of a batch. */
const BATCH_LIMITS = scanLimits({})

/** Limits of the JSON text of one event, whose data is free. */
const EVENT_LIMITS = scanLimits({ freeForm: ['data'] })

/** Reads an event in structured mode (HTTP binding 3.2): the whole event is JSON. @throws CeError EVENT_INVALID */
export function* readStructured(body: Buffer): Steps<IncomingEvent> {
  const text = utf8Text(body)
  const scan = new EventScan()
  assertWithinLimits((yield* scanJsonInSteps(text, EVENT_LIMITS, scan)).exceeded, EVENT_LIMITS)
  yield
  return yield* readEvent(text, scan.place(0, text.length))
}

/** Reads a batch (HTTP binding 3.3): an array of events, possibly empty. @throws CeError EVENT_INVALID */
export function* readBatch(body: Buffer): Steps<readonly IncomingEvent[]> {
  const text = utf8Text(body)
  const scan = new BatchScan()
  const { exceeded, end: batchEnd } = yield* scanJsonInSteps(text, BATCH_LIMITS, scan)
  assertWithinLimits(exceeded, BATCH_LIMITS)
  yield
  const { places } = scan
  const isEmpty = places.length === 1 && places[0]?.end === places[0]?.start
  if (places.length > MAX_BATCH_EVENTS) {
    throw invalidEvent(`the batch has more than ${MAX_BATCH_EVENTS} events; send several batches`)
  }
  if (!isArray(text, batchEnd)) {
    const isOther = !ARRAY_START.test(text) && 'members' in (yield* checkJson(body, ANY_KEYS))
    throw isOther ? invalidEvent('a batch must be a JSON array of events') : notJson()
  }
  const events: IncomingEvent[] = []
  if (isEmpty) return events
  const checked: CheckedAttributes = { texts: undefined }
  let readTo = LARGE_BODY_BYTES
  for (const place of places) {
    try {
      events.push(yield* readEvent(text, place, checked))
    } catch (error) {
      if (!(error instanceof CeError)) throw error
      const event = events.length + 1
      throw new CeError(error.code, `${error.message} (event ${event} of the batch)`, { ...error.details, event })
    }
    if (place.end <= readTo) continue
    readTo = place.end + LARGE_BODY_BYTES
    yield
  }
  return events
}

/** @throws CeError EVENT_INVALID for a limit that a body exceeds */
function assertWithinLimits(exceeded: ExceededLimit | undefined, limits: ScanLimits): void {
  if (exceeded === undefined) return
  const remedy =
    exceeded === 'parts' || exceeded === 'commas' ? '; send such data in binary mode, or as data_base64' : ''
  throw invalidEvent(`the body is ${limitText(exceeded, limits)}${remedy}`)
}

const ANY_KEYS = { maxKeys: 0 }
const ARRAY_START = /^[\t\n\r ]*\[/
const ONLY_DIGITS = /^\d+$/
const ONLY_BLANKS = /^[\t\n\r ]*$/
const CLOSE_BRACKET = 93

/**
 * Returns `true` if a text is one array.
 * @param end The place after the bracket that closes the outermost value
 */
function isArray(text: string, end: number): boolean {
  return ARRAY_START.test(text) && text.charCodeAt(end - 1) === CLOSE_BRACKET && ONLY_BLANKS.test(text.slice(end))
}

function utf8Text(body: Buffer): string {
  const text = body.toString('utf8')
  // Decoding replaces invalid bytes with U+FFFD. A text without U+FFFD is therefore valid.
  if (text.includes('\ufffd') && !isUtf8(body)) throw invalidEvent('the body is not UTF-8')
  return text
}

function parse(text: string): unknown {
  const read = readJson(text)
  if (read === undefined) throw notJson()
  return read.value
}

function notJson(): Error {
  return invalidEvent('the body is not JSON')
}

/** The place of an event in the text of a body. */
interface EventPlace {
  readonly start: number
  readonly end: number
  /** The number of its members, repeated ones included. */
  readonly members: number
  /** The range of its `data`; the last one if it is repeated, and empty if there is none. */
  readonly dataStart: number
  readonly dataEnd: number
}

/** Finds the data of an event in the scan of its text. */
class EventScan implements MemberSink {
  #members = 0
  #dataStart = 0
  #dataEnd = 0

  member(name: string, start: number, end: number): void {
    this.#members++
    if (name !== 'data') return
    this.#dataStart = start
    this.#dataEnd = end
  }

  /** Returns the place of the event whose members were reported. */
  place(start: number, end: number): EventPlace {
    const place = { start, end, members: this.#members, dataStart: this.#dataStart, dataEnd: this.#dataEnd }
    this.#members = 0
    this.#dataStart = 0
    this.#dataEnd = 0
    return place
  }
}

/** Finds the events of a batch, and their data, in the scan of its text. */
class BatchScan extends EventScan {
  readonly places: EventPlace[] = []

  element(start: number, end: number): void {
    const place = this.place(start, end)
    // One event over the limit is enough to reject the batch.
    if (this.places.length <= MAX_BATCH_EVENTS) this.places.push(place)
  }
}

/** The names of an event's members in their order, and the source text of each value. */
class Members implements MemberSink {
  readonly names: string[] = []
  readonly #sources = new Map<string, string>()
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  member(name: string, start: number, end: number): void {
    this.names.push(name)
    this.#sources.set(name, this.#text.slice(start, end))
  }

  /** @throws CeError EVENT_INVALID */
  assertFew(): void {
    const data = Number(this.names.includes('data')) + Number(this.names.includes('data_base64'))
    if (this.names.length - data > MAX_ATTRIBUTES) throw tooManyAttributes()
  }

  source(name: string): string {
    return this.#sources.get(name) ?? ''
  }

  /** Returns the first name that appears twice. */
  repeated(): string | undefined {
    const seen = new Set<string>()
    return this.names.find((name) => seen.size === seen.add(name).size)
  }
}

/** Scans the members of an event again: few events need more than the place of their data. */
function* membersOf(text: string): Steps<Members> {
  const members = new Members(text)
  yield* scanJsonInSteps(text, BATCH_LIMITS, members)
  return members
}

/** The attributes of the last event of a batch that was read. Those of the next event are mostly the same. */
interface CheckedAttributes {
  texts: Attributes['texts'] | undefined
}

/**
 * Reads an event. Data is copied from its source text, which preserves large numbers, the order of keys and repeated
 * keys; the value of large data is not built.
 * @param checked Attributes that need no check
 */
function* readEvent(
  bodyText: string,
  { start, end, members: count, dataStart, dataEnd }: EventPlace,
  checked?: CheckedAttributes,
): Steps<IncomingEvent> {
  const dataText = dataEnd > dataStart ? bodyText.slice(dataStart, dataEnd) : undefined
  const isLarge = dataText !== undefined && dataText.length > LARGE_BODY_BYTES
  // Large data is read apart: a number takes its place.
  const text = isLarge
    ? `${bodyText.slice(start, dataStart)}0${bodyText.slice(dataEnd, end)}`
    : bodyText.slice(start, end)
  let members = count > MAX_ATTRIBUTES ? yield* membersOf(text) : undefined
  members?.assertFew()
  if (isLarge) yield
  const event = parse(text)
  if (text.length > LARGE_BODY_BYTES) yield
  if (!isJsonObject(event)) throw invalidEvent('an event must be a JSON object')
  let names: readonly string[] = Object.keys(event)
  if (names.length !== count) {
    members ??= yield* membersOf(text)
    throw invalidEvent(`the member ${shownText(members.repeated() ?? '')} appears twice`)
  }
  // An object has names of digits first, not in the order of the text.
  if (ONLY_DIGITS.test(names[0] ?? '')) {
    members ??= yield* membersOf(text)
    names = members.names
  }
  const texts = new Map<string, string>()
  const types = new Map<string, AttributeType>()
  for (const name of names) {
    if (name === 'data' || name === 'data_base64') continue
    assertAttributeName(name)
    const value = event[name]
    // `null` equals an absent member (JSON format 2.2).
    if (value === null) continue
    if (typeof value === 'string') texts.set(name, value)
    else {
      members ??= yield* membersOf(text)
      const source = members.source(name)
      types.set(name, typeOf(name, value, source))
      texts.set(name, source)
    }
  }
  const attributes = { texts, types }
  assertAttributes(attributes, checked?.texts)
  if (checked) checked.texts = texts
  const type = texts.get('datacontenttype')
  const data = isLarge ? yield* readLarge(dataText, isJsonType(type)) : event['data']
  const { body, form } = yield* readData(event['data_base64'], data, dataText, type)
  return { subject: texts.get('subject'), message: { body, tags: tagsOf(attributes, body, form) } }
}

/** Returns the type of an attribute that is not a string. @throws CeError EVENT_INVALID */
function typeOf(name: string, value: unknown, source: string): AttributeType {
  const isCore = CORE_ATTRIBUTES.has(name)
  if (!isCore && typeof value === 'boolean') return 'boolean'
  if (!isCore && typeof value === 'number' && isIntegerText(source)) return 'integer'
  const allowed = isCore ? 'a string' : 'a string, a whole number, true or false'
  throw invalidEvent(`the attribute ${name} is ${kindOf(value)}; it must be ${allowed}`, name)
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/**
 * Reads large data. Returns a string, or the source text of another value in UTF-8; data of a JSON type is not parsed. The
 * limits are checked, in the whole text.
 * @throws CeError EVENT_INVALID
 */
function* readLarge(dataText: string, isJson: boolean): Steps<unknown> {
  yield
  if (!isJson && dataText.startsWith('"')) return parse(dataText)
  const source = yield* encodedInSteps(dataText)
  if ('problem' in (yield* checkJson(source, ANY_KEYS))) throw notJson()
  return source
}

/**
 * Reads the data of an event (JSON format 3.1).
 * @param data Its value; of large data the result of {@link readLarge}
 */
function* readData(
  base64: unknown,
  data: unknown,
  dataText: string | undefined,
  datacontenttype: string | undefined,
): Steps<{ body: Uint8Array; form: DataForm }> {
  if (base64 !== undefined && base64 !== null) {
    if (dataText !== undefined) throw invalidEvent('it has both data and data_base64; send only one of them')
    return { body: yield* readBase64(base64), form: 'base64' }
  }
  if (dataText === undefined) return { body: new Uint8Array(0), form: 'none' }
  if (isJsonType(datacontenttype)) {
    return { body: data instanceof Uint8Array ? data : encoded(dataText), form: 'json' }
  }
  if (typeof data !== 'string') {
    throw invalidEvent(
      `data is not a string, but datacontenttype is ${shownText(datacontenttype ?? '')}, which is not JSON; send its text as a string, or data_base64`,
    )
  }
  if (!data.isWellFormed()) throw invalidEvent('data is not valid Unicode (it contains half a surrogate pair)')
  return { body: data.length > LARGE_BODY_BYTES ? yield* encodedInSteps(data) : encoded(data), form: 'text' }
}

/** Encodes a text in UTF-8. A short one shares a buffer with others, because a separate one costs six times as much. */
function encoded(text: string): Uint8Array {
  const { buffer, byteOffset, byteLength } = Buffer.from(text)
  return new Uint8Array(buffer, byteOffset, byteLength)
}

/** The characters that are decoded at once, a multiple of 4: a millisecond of work. */
const PIECE_CHARACTERS = 262_144

/** Decodes base64, with a pause after each piece. */
function* readBase64(text: unknown): Steps<Buffer> {
  if (typeof text !== 'string') throw notBase64()
  const padding = text.indexOf('=')
  if (padding !== -1 && padding < text.length - 2) throw notBase64()
  const bytes = Buffer.allocUnsafe(Buffer.byteLength(text, 'base64'))
  let length = 0
  for (let at = 0; at < text.length; at += PIECE_CHARACTERS) {
    if (at > 0) yield
    const piece = text.slice(at, at + PIECE_CHARACTERS)
    const start = length
    length += bytes.write(piece, start, 'base64')
    if (bytes.toString('base64', start, length) !== piece) throw notBase64()
  }
  return bytes
}

function notBase64(): Error {
  return invalidEvent('data_base64 must be a string of base64 (RFC 4648 section 4, with padding)')
}
