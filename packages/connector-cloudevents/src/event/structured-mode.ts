import { Buffer, isUtf8 } from 'node:buffer'

import { encodeText } from '@signalbox/broker-core'
import { shownText } from '@signalbox/broker-core/internal'
import type { MemberSink } from '@signalbox/http-kit'
import { elementTexts, isJsonObject, readJson, scanJson } from '@signalbox/http-kit'

import { CeError } from '../errors.ts'
import type { AttributeType } from './attributes.ts'
import { assertAttributeName, assertAttributes, CORE_ATTRIBUTES } from './attributes.ts'
import type { DataForm } from './data-form.ts'
import { isJsonType } from './data-form.ts'
import { isIntegerText, tagsOf } from './event-tags.ts'
import type { IncomingEvent } from './incoming-event.ts'
import { invalidEvent } from './invalid-event.ts'
import {
  assertWithinLimits,
  BATCH_LIMITS,
  EVENT_LIMITS,
  MAX_ATTRIBUTES,
  MAX_BATCH_EVENTS,
  tooManyAttributes,
} from './limits.ts'

/** Reads an event in structured mode (HTTP binding 3.2): the whole event is JSON. @throws CeError EVENT_INVALID */
export function readStructured(body: Buffer): IncomingEvent {
  const text = textOf(body)
  const members = new Members(text)
  assertWithinLimits(scanJson(text, EVENT_LIMITS, members).exceeded, EVENT_LIMITS)
  members.assertFew()
  return readEvent(parse(text), members)
}

/** Reads a batch (HTTP binding 3.3): an array of events, possibly empty. @throws CeError EVENT_INVALID */
export function readBatch(body: Buffer): readonly IncomingEvent[] {
  const text = textOf(body)
  assertWithinLimits(scanJson(text, BATCH_LIMITS, NO_MEMBERS).exceeded, BATCH_LIMITS)
  const elements = elementTexts(text, MAX_BATCH_EVENTS + 1)
  if (elements.length > MAX_BATCH_EVENTS) {
    throw invalidEvent(`the batch has more than ${MAX_BATCH_EVENTS} events; send several batches`)
  }
  const values = parse(text)
  if (!Array.isArray(values)) throw invalidEvent('a batch must be a JSON array of events')
  return elements.map((element, i) => {
    try {
      const members = new Members(element)
      scanJson(element, BATCH_LIMITS, members)
      members.assertFew()
      return readEvent(values[i], members)
    } catch (error) {
      if (!(error instanceof CeError)) throw error
      const event = i + 1
      throw new CeError(error.code, `${error.message} (event ${event} of the batch)`, { ...error.details, event })
    }
  })
}

const NO_MEMBERS: MemberSink = { member(): void {} }

function textOf(body: Buffer): string {
  const text = body.toString('utf8')
  // Decoding replaces invalid bytes with U+FFFD. A text without U+FFFD is therefore valid.
  if (text.includes('\ufffd') && !isUtf8(body)) throw invalidEvent('the body is not UTF-8')
  return text
}

function parse(text: string): unknown {
  const read = readJson(text)
  if (read === undefined) throw invalidEvent('the body is not JSON')
  return read.value
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

  /** Returns the first name that appears twice. */
  repeated(): string | undefined {
    return this.names.find((name, index) => this.names.indexOf(name) !== index)
  }
}

/**
 * Reads a parsed event. Data is copied from its source text, which preserves large numbers, the order of keys and
 * repeated keys.
 */
function readEvent(event: unknown, members: Members): IncomingEvent {
  if (!isJsonObject(event)) throw invalidEvent('an event must be a JSON object')
  const { names } = members
  if (Object.keys(event).length !== names.length) {
    throw invalidEvent(`the member ${shownText(members.repeated() ?? '')} appears twice`)
  }
  const texts = new Map<string, string>()
  const types = new Map<string, AttributeType>()
  let dataText: string | undefined
  for (const [index, name] of names.entries()) {
    if (name === 'data') dataText = members.source(index)
    else if (name !== 'data_base64') addAttribute(name, event[name], index, members, texts, types)
  }
  const attributes = { texts, types }
  assertAttributes(attributes)
  const { body, form } = readData(event, dataText, texts.get('datacontenttype'))
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
  { data, data_base64: base64 }: { readonly data?: unknown; readonly data_base64?: unknown },
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
