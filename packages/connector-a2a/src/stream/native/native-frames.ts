import { Buffer } from 'node:buffer'

import type { StreamForm } from '../stream-form.ts'

/**
 * Writes the events of a stream in one binding of A2A. The content is JSON source text without line ends, with one
 * character for each byte, and so is the event.
 */
export interface NativeFrames extends StreamForm {
  result(content: string): string
  /** @param content A JSON-RPC error object of the agent */
  error(content: string): string
}

/**
 * A comment that ends a stream. The last frame needs a text, and A2A has no event for the end.
 */
export const END_COMMENT = ': end\n\n'

/** Returns the text of bytes that {@link asBytes} has returned. */
export function fromBytes(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString()
}

/** Returns a text with one character for each byte of its UTF-8 form, as streams are relayed. */
export function asBytes(text: string): string {
  return Buffer.from(text).toString('latin1')
}
