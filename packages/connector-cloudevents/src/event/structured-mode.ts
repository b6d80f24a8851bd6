import { Buffer, isUtf8 } from 'node:buffer'

import { elementTexts, scanJson } from '@signalbox/http-kit'

import { CeError } from '../errors.ts'
import type { AttributeType } from './attributes.ts'
import { assertAttributeName, assertAttributes, CORE_ATTRIBUTES } from './attributes.ts'
import type { DataForm } from './data-form.ts'
import { isJsonType } from './data-form.ts'
import { isIntegerText, tagsOf } from './event-tags.ts'
import type { IncomingEvent } from './incoming-event.ts'
import { invalidEvent } from './invalid-event.ts'

/** HTTP binding 3.2: the whole event is JSON. @throws CeError EVENT_INVALID */
export function readStructured(body: Buffer): IncomingEvent {
  const text = textOf(body)
  parse(text)
  return readEvent(text)
}

/** HTTP binding 3.3: an array of events, which may be empty. @throws CeError EVENT_INVALID */
export function readBatch(body: Buffer): readonly IncomingEvent[] {
  const text = textOf(body)
  if (!Array.isArray(parse(text))) throw invalidEvent('a batch must be a JSON array of events')
  return elementTexts(text).map((element, i) => {
    try {
      return readEvent(element)
    } catch (error) {
      if (!(error instanceof CeError)) throw error
      const event = i + 1
      throw new CeError(error.code, `${error.message} (event ${event} of the batch)`, { ...error.details, event })
    }
  })
}

function textOf(body: Buffer): string {
  if (!isUtf8(body)) throw invalidEvent('the body is not UTF-8')
  return body.toString('utf8')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalidEvent('the body is not JSON')
  }
}

/**
 * Reads an event from the text of a JSON object that is known to be JSON. Data is sliced out of it, not parsed and
 * printed: numbers of any size, the order of keys and repeated keys come through.
 */
function readEvent(json: string): IncomingEvent {
  if (!json.trimStart().startsWith('{')) throw invalidEvent('an event must be a JSON object')
  const members = new Map<string, string>()
  scanJson(
    json,
    { maxDepth: Number.MAX_SAFE_INTEGER, maxKeys: 0 },
    {
      member(name, start, end) {
        if (members.has(name)) throw invalidEvent(`the member ${JSON.stringify(name.slice(0, 64))} is there twice`)
        members.set(name, json.slice(start, end))
      },
    },
  )
  const dataText = members.get('data')
  const base64Text = members.get('data_base64')
  members.delete('data')
  members.delete('data_base64')
  const texts = new Map<string, string>()
  const types = new Map<string, AttributeType>()
  for (const [name, source] of members) {
    assertAttributeName(name)
    // Null is the same as absent (JSON format 2.2).
    if (source === 'null') continue
    const type = typeOf(name, source)
    texts.set(name, type === 'string' ? String(JSON.parse(source)) : source)
    if (type !== 'string') types.set(name, type)
  }
  const attributes = { texts, types }
  assertAttributes(attributes)
  const { body, form } = readData(dataText, base64Text, texts.get('datacontenttype'))
  return { subject: texts.get('subject'), message: { body, tags: tagsOf(attributes, body, form) } }
}

function typeOf(name: string, source: string): AttributeType {
  const first = source.charAt(0)
  if (first === '"') return 'string'
  if (!CORE_ATTRIBUTES.has(name)) {
    if (first === 't' || first === 'f') return 'boolean'
    if (isIntegerText(source)) return 'integer'
  }
  const allowed = CORE_ATTRIBUTES.has(name) ? 'a string' : 'a string, a whole number, true or false'
  throw invalidEvent(`the attribute ${name} is ${kindOf(first)}; it must be ${allowed}`, name)
}

function kindOf(first: string): string {
  if (first === '{') return 'an object'
  if (first === '[') return 'an array'
  return first === 't' || first === 'f' ? 'a boolean' : 'a number'
}

/** JSON format 3.1. */
function readData(
  dataText: string | undefined,
  base64Text: string | undefined,
  datacontenttype: string | undefined,
): { body: Buffer; form: DataForm } {
  if (base64Text !== undefined && base64Text !== 'null') {
    if (dataText !== undefined) throw invalidEvent('it has both data and data_base64; it may have one of them')
    return { body: readBase64(base64Text), form: 'base64' }
  }
  if (dataText === undefined) return { body: Buffer.alloc(0), form: 'none' }
  if (isJsonType(datacontenttype)) return { body: Buffer.from(dataText), form: 'json' }
  const data: unknown = JSON.parse(dataText)
  if (typeof data !== 'string') {
    throw invalidEvent(
      `data is not a string, but datacontenttype is ${JSON.stringify(datacontenttype)}, which is not JSON; send its text as a string, or data_base64`,
    )
  }
  if (!data.isWellFormed()) throw invalidEvent('data is not valid Unicode (it holds half a surrogate pair)')
  return { body: Buffer.from(data), form: 'text' }
}

function readBase64(source: string): Buffer {
  const text: unknown = JSON.parse(source)
  if (typeof text === 'string') {
    const bytes = Buffer.from(text, 'base64')
    if (bytes.toString('base64') === text) return bytes
  }
  throw invalidEvent('data_base64 must be a string of base64 (RFC 4648 section 4, with padding)')
}
