import { Buffer } from 'node:buffer'

import { encodeText } from '@signalbox/broker-core'

import { bodyOf } from '../json/long-body.ts'
import { fairTurns } from './fair-turns.ts'
import type { Steps } from './fair-turns.ts'

/** The characters that are encoded at once: a millisecond of work. */
const PIECE_CHARACTERS = 262_144

/** Encodes a text in UTF-8, with a pause after each piece. */
export function* encodedInSteps(text: string): Steps<Uint8Array> {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  let length = 0
  for (let at = 0; at < text.length;) {
    const end = Math.min(text.length, at + PIECE_CHARACTERS)
    // A surrogate pair is one character in UTF-8.
    const next = isHighSurrogate(text.charCodeAt(end - 1)) ? end + 1 : end
    length += bytes.write(text.slice(at, next), length)
    at = next
    yield
  }
  return new Uint8Array(bytes.buffer, 0, length)
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}

/**
 * Returns the body in the arguments of a call in UTF-8. A long one was decoded with its JSON, or is encoded a piece at a
 * time, as the caller's account is served.
 */
export function encodedBody(
  args: { readonly body: string },
  { account, clientId }: { readonly account?: string | undefined; readonly clientId: string },
): Uint8Array | Promise<Uint8Array> {
  const { body } = args
  if (body.length > PIECE_CHARACTERS) return fairTurns.steps(account ?? clientId, encodedInSteps(body))
  return bodyOf(args) ?? encodeText(body)
}
