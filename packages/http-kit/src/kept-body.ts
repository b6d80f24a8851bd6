import { Buffer } from 'node:buffer'

import { Refusal } from './admission/refusal.ts'
import { BodyRefused } from './errors.ts'
import type { HttpRequest } from './http-message.ts'

/** A request whose body the host may have read: Express and others keep the result in `body`. */
interface ParsedRequest extends HttpRequest {
  readonly body?: unknown
}

/** Returns `true` if the host has read the body, or a part of it. */
export function isRead({ readableEnded, readableDidRead }: HttpRequest): boolean {
  return readableEnded || readableDidRead
}

/**
 * Returns the bytes of a body that the host has read and kept in `request.body`: as bytes, as text, or parsed from JSON.
 * A parsed body is written as JSON again, without the duplicate keys that it may have had.
 * @throws Error if the host did not keep the body, {@link BodyRefused} if it is nested too deeply
 */
export function keptBody(request: ParsedRequest): Buffer {
  const { body } = request
  if (body !== undefined) return bytesOf(body)
  if (!request.readableDidRead) return Buffer.alloc(0)
  throw new Error(
    'the body of the request was read before the connector, and request.body is undefined; ' +
      'mount the connector before the body parser, or set request.body to the text, the bytes or the parsed JSON',
  )
}

/** Returns the bytes of a body that is text, bytes, or parsed from JSON. @throws BodyRefused */
export function bytesOf(body: unknown): Buffer {
  if (typeof body === 'string') return Buffer.from(body)
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (body instanceof ArrayBuffer) return Buffer.from(body)
  return Buffer.from(jsonOf(body))
}

function jsonOf(body: unknown): string {
  try {
    return JSON.stringify(body) ?? ''
  } catch (cause) {
    // The only problem that a client can cause: other values are not in JSON.
    if (!(cause instanceof RangeError)) throw cause
    throw new BodyRefused(new Refusal('body_too_large', 'the body is nested too deeply', { cause }))
  }
}
