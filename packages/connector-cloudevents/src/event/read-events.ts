import { Buffer, isUtf8 } from 'node:buffer'

import type { HttpRequest, Steps } from '@signalbox/http-kit'

import { CeError } from '../errors.ts'
import { assertAttributeName, assertAttributes, invalidEvent, MAX_ATTRIBUTES, tooManyAttributes } from './attributes.ts'
import type { Attributes, IncomingEvent } from './attributes.ts'
import { tagsOf } from './event-tags.ts'
import { readBatch, readStructured } from './structured-mode.ts'

/** Reads the events of a request. @throws CeError EVENT_INVALID */
export function* readEvents(mode: ContentMode, request: HttpRequest, body: Buffer): Steps<readonly IncomingEvent[]> {
  if (mode === 'batch') return yield* readBatch(body)
  return [mode === 'binary' ? readBinary(request, body) : yield* readStructured(body)]
}

/** The content modes of the HTTP binding. */
type ContentMode = 'structured' | 'binary' | 'batch'

const STRUCTURED = 'application/cloudevents+json'
const MEDIA_TYPE = /^application\/cloudevents(-batch)?(\+[a-z0-9.-]+)?[\t ]*(?:;(.*))?$/i
const CHARSET = /(?:^|;)[\t ]*charset[\t ]*=[\t ]*"?([^";\t ]*)/i

/** Returns the content mode of a request, from its headers alone. @throws CeError MEDIA_TYPE_UNSUPPORTED */
export function contentMode(headers: HttpRequest['headers']): ContentMode {
  if (headers['content-encoding'] !== undefined) {
    throw unsupported('Content-Encoding is not supported; send the body without it')
  }
  // The usual one is compared, not matched.
  if (headers['content-type'] === STRUCTURED) return 'structured'
  const [type, batch, format, parameters = ''] = MEDIA_TYPE.exec(headers['content-type'] ?? '') ?? []
  if (type !== undefined) {
    if (format?.toLowerCase() !== '+json') {
      throw unsupported(
        'the only supported CloudEvents format is JSON; send application/cloudevents+json or application/cloudevents-batch+json',
      )
    }
    const charset = CHARSET.exec(parameters)?.[1] ?? 'utf-8'
    if (!/^utf-?8$/i.test(charset)) throw unsupported(`charset is ${JSON.stringify(charset)}; it must be utf-8`)
    return batch === undefined ? 'structured' : 'batch'
  }
  if (headers['ce-specversion'] !== undefined) return 'binary'
  throw unsupported(
    'the request is not a CloudEvent; send application/cloudevents+json, application/cloudevents-batch+json, or ce- headers with ce-specversion',
  )
}

export function unsupported(reason: string): CeError {
  return new CeError('MEDIA_TYPE_UNSUPPORTED', `unsupported media type: ${reason}`)
}

/**
 * Reads an event in binary mode (HTTP binding 3.1): attributes are text in `ce-` headers, and the data is the
 * unchanged body.
 * @throws CeError EVENT_INVALID
 */
function readBinary({ rawHeaders, headers }: HttpRequest, body: Buffer): IncomingEvent {
  const texts = new Map<string, string>()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const header = rawHeaders[i] ?? ''
    if (!isAttributeHeader(header)) continue
    const name = header.slice(3).toLowerCase()
    assertAttributeName(name)
    if (name === 'datacontenttype') {
      throw invalidEvent('datacontenttype is the Content-Type header in binary mode, not a ce- header', name)
    }
    if (texts.has(name)) throw invalidEvent(`the header ce-${name} appears twice`, name)
    texts.set(name, decodeHeaderValue(name, rawHeaders[i + 1] ?? ''))
  }
  const contentType = headers['content-type']
  if (contentType !== undefined) texts.set('datacontenttype', contentType)
  if (texts.size > MAX_ATTRIBUTES) throw tooManyAttributes()
  const attributes: Attributes = { texts, types: new Map() }
  assertAttributes(attributes)
  return { subject: texts.get('subject'), message: { body, tags: tagsOf(attributes, body) } }
}

/** Returns `true` if the header begins with `ce-`, in any case. */
function isAttributeHeader(header: string): boolean {
  return header.charCodeAt(2) === 45 && (header.charCodeAt(0) | 32) === 99 && (header.charCodeAt(1) | 32) === 101
}

// oxlint-disable-next-line no-control-regex -- matches text that needs no decoding
const PLAIN = /^[\x20-\x24\x26-\x7e]*$/
const BAD_PERCENT = /%(?![0-9A-Fa-f]{2})/

/**
 * Returns the value of an attribute from its `ce-` header (HTTP binding 3.1.3.2): removes the quotes and backslashes
 * of a quoted string, and then percent-decodes once. The bytes must be UTF-8. Node decodes headers as Latin-1, so
 * unencoded bytes of a client are read as UTF-8 too.
 *
 * @throws CeError EVENT_INVALID
 */
function decodeHeaderValue(attribute: string, header: string): string {
  const text = header.startsWith('"') ? unquote(attribute, header) : header
  if (PLAIN.test(text)) return text
  if (BAD_PERCENT.test(text)) {
    throw invalidEvent(
      `the header ce-${attribute} has a % without two hexadecimal digits; write a percent sign as %25`,
      attribute,
    )
  }
  const bytes = Buffer.from(
    text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )
  if (!isUtf8(bytes)) throw invalidEvent(`the header ce-${attribute} is not UTF-8 once decoded`, attribute)
  return bytes.toString('utf8')
}

function unquote(attribute: string, header: string): string {
  const content = /^"((?:[^"\\]|\\.)*)"$/s.exec(header)?.[1]
  if (content === undefined) {
    throw invalidEvent(
      `the header ce-${attribute} begins with a quote and is not a quoted string; write a quote as %22`,
      attribute,
    )
  }
  return content.replace(/\\(.)/gs, '$1')
}
