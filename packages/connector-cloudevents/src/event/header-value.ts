import { Buffer, isUtf8 } from 'node:buffer'

import { invalidEvent } from './invalid-event.ts'

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
export function decodeHeaderValue(attribute: string, header: string): string {
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

/** Returns the `ce-` header of an attribute's value (HTTP binding 3.1.3.2): percent-encodes what a header cannot hold. */
export function encodeHeaderValue(text: string): string {
  return text.toWellFormed().replace(/[^\x21\x23\x24\x26-\x7e]+/gu, (part) => encodeURIComponent(part))
}
