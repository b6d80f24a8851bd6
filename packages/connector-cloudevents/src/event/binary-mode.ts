import type { Buffer } from 'node:buffer'

import type { Attributes } from './attributes.ts'
import { assertAttributeName, assertAttributes } from './attributes.ts'
import { tagsOf } from './event-tags.ts'
import { decodeHeaderValue } from './header-value.ts'
import type { IncomingEvent } from './incoming-event.ts'
import { invalidEvent } from './invalid-event.ts'
import { MAX_ATTRIBUTES, tooManyAttributes } from './limits.ts'
import type { HttpRequest } from '@signalbox/http-kit'

/**
 * Reads an event in binary mode (HTTP binding 3.1): attributes are text in `ce-` headers, and the data is the
 * unchanged body.
 * @throws CeError EVENT_INVALID
 */
export function readBinary({ rawHeaders, headers }: HttpRequest, body: Buffer): IncomingEvent {
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
