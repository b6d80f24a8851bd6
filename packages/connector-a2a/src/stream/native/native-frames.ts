import { Buffer } from 'node:buffer'

import { errorText } from '@signalbox/http-kit'

import { errorDetails } from '../../native/error-info.ts'
import type { StreamForm } from '../stream-form.ts'

/**
 * A comment that ends a stream. The last frame needs a text, and A2A has no event for the end.
 */
export const END_COMMENT = ': end\n\n'

/** Returns an event with a JSON-RPC response. `id` and `content` are JSON source text without line ends. */
export function responseEvent(id: string, member: 'result' | 'error', content: string): string {
  return `data: {"jsonrpc":"2.0","id":${id},"${member}":${content}}\n\n`
}

/** Returns the form of a stream whose events are JSON-RPC responses with this id, JSON source text. */
export function nativeForm(id: string): StreamForm {
  return {
    failure({ message, native: { code, reason } }) {
      return { text: `data: ${errorText(id, code, message, errorDetails(reason))}\n\n`, code }
    },
  }
}

/** Returns the text of bytes that {@link asBytes} has returned. */
export function fromBytes(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString()
}

/** Returns a text with one character for each byte of its UTF-8 form, as streams are relayed. */
export function asBytes(text: string): string {
  return Buffer.from(text).toString('latin1')
}
