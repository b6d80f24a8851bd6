import { Buffer, isUtf8 } from 'node:buffer'

import { encodeText } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'
import type { Steps } from '@signalbox/http-kit'
import type { ExceededLimit, MemberSink, ScanLimits } from '@signalbox/http-kit/internal'
import {
  checkJson,
  elementTextsInSteps,
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
import type { AttributeType, IncomingEvent } from './attributes.ts'
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
  const members = new Members(text)
  assertWithinLimits((yield* scanJsonInSteps(text, EVENT_LIMITS, members)).exceeded, EVENT_LIMITS)
  yield
  return yield* readEvent(text, members)
}

/** Reads a batch (HTTP binding 3.3): an array of events, possibly empty. @throws CeError EVENT_INVALID */
export function* readBatch(body: Buffer): Steps<readonly IncomingEvent[]> {
  const text = utf8Text(body)
  assertWithinLimits((yield* scanJsonInSteps(text, BATCH_LIMITS, NO_MEMBERS)).exceeded, BATCH_LIMITS)
  yield
  const elements = yield* elementTextsInSteps(text, MAX_BATCH_EVENTS + 1)
  if (elements.length > MAX_BATCH_EVENTS) {
    throw invalidEvent(`the batch has more than ${MAX_BATCH_EVENTS} events; send several batches`)
  }
  yield
  if (!isArrayOf(elements, text)) {
    const isOther = !ARRAY_START.test(text) && 'members' in (yield* checkJson(body, ANY_KEYS))
    throw isOther ? invalidEvent('a batch must be a JSON array of events') : notJson()
  }
  const events: IncomingEvent[] = []
  let read = 0
  for (const element of elements) {
    try {
      const members = new Members(element)
      yield* scanJsonInSteps(element, BATCH_LIMITS, members)
      events.push(yield* readEvent(element, members))
    } catch (error) {
      if (!(error instanceof CeError)) throw error
      const event = events.length + 1
      throw new CeError(error.code, `${error.message} (event ${event} of the batch)`, { ...error.details, event })
    }
    read += element.length
    if (read <= LARGE_BODY_BYTES) continue
    read = 0
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

/** Returns `true` if a text is these elements in brackets, with commas between them. */
function isArrayOf(elements: readonly string[], text: string): boolean {
  // Without blanks, as most clients write it, one comparison of the text is enough.
  if (text === `[${elements.join(',')}]`) return true
  const gap = /[\t\n\r ]*([[\],]?)[\t\n\r ]*/y
  const mark = (): string | undefined => gap.exec(text)?.[1]
  if (mark() !== '[') return false
  for (const [i, element] of elements.entries()) {
    if ((i > 0 && mark() !== ',') || !text.startsWith(element, gap.lastIndex)) return false
    gap.lastIndex += element.length
  }
  return mark() === ']' && gap.lastIndex === text.length
}

const NO_MEMBERS: MemberSink = { member(): void {} }

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

/** The attributes, and `data` or `data_base64`. */
const MAX_MEMBERS = MAX_ATTRIBUTES + 2

/** The members of one event, with the range of each in its JSON text. */
class Members implements MemberSink {
  readonly names: string[] = []
  readonly #text: string
  readonly #places: number[] = []

  constructor(text: string) {
    this.#text = text
  }

  member(name: string, start: number, end: number): void {
    // One member over the limit is enough to reject the event.
    if (this.names.length <= MAX_MEMBERS) {
      this.names.push(name)
      this.#places.push(start, end)
    }
  }

  /** @throws CeError EVENT_INVALID */
  assertFew(): void {
    const data = Number(this.names.includes('data')) + Number(this.names.includes('data_base64'))
    if (this.names.length - data > MAX_ATTRIBUTES) throw tooManyAttributes()
  }

  source(index: number): string {
    return this.#text.slice(this.#places[2 * index], this.#places[2 * index + 1])
  }

  /** Returns the text with a number in the place of a member. */
  without(index: number): string {
    return `${this.#text.slice(0, this.#places[2 * index])}0${this.#text.slice(this.#places[2 * index + 1])}`
  }

  /** Returns the first name that appears twice. */
  repeated(): string | undefined {
    return this.names.find((name, index) => this.names.indexOf(name) !== index)
  }
}

/**
 * Reads the members of an event. Data is copied from its source text, which preserves large numbers, the order of keys
 * and repeated keys; the value of large data is not built.
 */
function* readEvent(text: string, members: Members): Steps<IncomingEvent> {
  members.assertFew()
  const { names } = members
  const dataIndex = names.indexOf('data')
  const dataText = dataIndex === -1 ? undefined : members.source(dataIndex)
  const isLarge = dataText !== undefined && dataText.length > LARGE_BODY_BYTES
  if (isLarge) {
    yield
    // The limits are checked, in the whole text.
    const json = yield* checkJson(encodeText(dataText), ANY_KEYS)
    if ('problem' in json) throw notJson()
    yield
  }
  const event = parse(isLarge ? members.without(dataIndex) : text)
  if (!isJsonObject(event)) throw invalidEvent('an event must be a JSON object')
  if (Object.keys(event).length !== names.length) {
    throw invalidEvent(`the member ${shownText(members.repeated() ?? '')} appears twice`)
  }
  const texts = new Map<string, string>()
  const types = new Map<string, AttributeType>()
  for (const [index, name] of names.entries()) {
    if (name !== 'data' && name !== 'data_base64') addAttribute(name, event[name], index, members, texts, types)
  }
  const attributes = { texts, types }
  assertAttributes(attributes)
  yield
  const data = isLarge && dataText.startsWith('"') ? parse(dataText) : event['data']
  const { body, form } = readData(event['data_base64'], data, dataText, texts.get('datacontenttype'))
  return { subject: texts.get('subject'), message: { body, tags: tagsOf(attributes, body, form) } }
}

function addAttribute(
  name: string,
  value: unknown,
  index: number,
  members: Members,
  texts: Map<string, string>,
  types: Map<string, AttributeType>,
): void {
  assertAttributeName(name)
  if (typeof value === 'string') {
    texts.set(name, value)
    return
  }
  // `null` equals an absent member (JSON format 2.2).
  if (value === null) return
  const isCore = CORE_ATTRIBUTES.has(name)
  const source = isCore ? '' : members.source(index)
  if (isCore || !(typeof value === 'boolean' || (typeof value === 'number' && isIntegerText(source)))) {
    const allowed = isCore ? 'a string' : 'a string, a whole number, true or false'
    throw invalidEvent(`the attribute ${name} is ${kindOf(value)}; it must be ${allowed}`, name)
  }
  texts.set(name, source)
  types.set(name, typeof value === 'boolean' ? 'boolean' : 'integer')
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** Reads the data of an event (JSON format 3.1). */
function readData(
  base64: unknown,
  data: unknown,
  dataText: string | undefined,
  datacontenttype: string | undefined,
): { body: Uint8Array; form: DataForm } {
  if (base64 !== undefined && base64 !== null) {
    if (dataText !== undefined) throw invalidEvent('it has both data and data_base64; send only one of them')
    return { body: readBase64(base64), form: 'base64' }
  }
  if (dataText === undefined) return { body: new Uint8Array(0), form: 'none' }
  if (isJsonType(datacontenttype)) return { body: encodeText(dataText), form: 'json' }
  if (typeof data !== 'string') {
    throw invalidEvent(
      `data is not a string, but datacontenttype is ${shownText(datacontenttype ?? '')}, which is not JSON; send its text as a string, or data_base64`,
    )
  }
  if (!data.isWellFormed()) throw invalidEvent('data is not valid Unicode (it contains half a surrogate pair)')
  return { body: encodeText(data), form: 'text' }
}

function readBase64(text: unknown): Buffer {
  if (typeof text === 'string') {
    const bytes = Buffer.from(text, 'base64')
    if (bytes.toString('base64') === text) return bytes
  }
  throw invalidEvent('data_base64 must be a string of base64 (RFC 4648 section 4, with padding)')
}
