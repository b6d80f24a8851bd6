import { digestOf, IDEMPOTENCY_KEY_FORM, isIdempotencyKey } from '@signalbox/broker-core/internal'
import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES } from '@signalbox/http-kit'
import { LARGE_BODY_BYTES, shownValue } from '@signalbox/http-kit/internal'

import { NativeError } from '../native/errors.ts'
import type { RunCursor } from '../runs/run-log.ts'
import { parseCursor } from '../runs/run-log.ts'
import { isObject, memberOf, METHODS, translateRequest } from '../wire/index.ts'
import type { Call } from './call.ts'

/** Returns the key in the header of a request. @throws NativeError IDEMPOTENCY_KEY_INVALID */
export function keyIn(header: string | string[]): string {
  const key = typeof header === 'string' ? header : header.join(', ')
  if (isIdempotencyKey(key)) return key
  throw new NativeError(
    JSON_RPC_CODES.INVALID_PARAMS,
    'IDEMPOTENCY_KEY_INVALID',
    `invalid params: the header Idempotency-Key is ${shownValue(key).slice(0, 64)}; it must have ${IDEMPOTENCY_KEY_FORM}`,
  )
}

/** Returns the last event that a caller has, by its header. @throws NativeError CURSOR_INVALID */
export function cursorIn(header: string | string[] | undefined, isDurable: boolean): RunCursor | undefined {
  // Streams of other agents have no ids of events, and ignore the header.
  if (header === undefined || header === '' || !isDurable) return undefined
  const cursor = parseCursor(String(header))
  if (cursor === undefined) throw cursorInvalid('it is not the id of an event')
  return cursor
}

/** Returns the error for a cursor at which a caller cannot continue. */
export function cursorInvalid(problem: string): NativeError {
  const text = `invalid params: the header Last-Event-ID is not valid: ${problem}`
  return new NativeError(JSON_RPC_CODES.INVALID_PARAMS, 'CURSOR_INVALID', text)
}

function messageOf({ params }: Call): JsonObject | undefined {
  const message = params?.['message']
  return isObject(message) ? message : undefined
}

/** Returns the `messageId` of a call if it can be a key. Messages that the gateway writes itself are new ones each time. */
export function messageIdOf(call: Call): string | undefined {
  const message = messageOf(call)
  const messageId = message && memberOf(message, 'messageId')
  return typeof messageId === 'string' && isIdempotencyKey(messageId) ? messageId : undefined
}

/**
 * Returns the digest of a message: the same in either version of A2A, in each binding, for any order of members, and for
 * any `messageId`. A large message is not parsed for it, so that only the same text has the same digest.
 */
export function digestOfCall(call: Call): string {
  const { body, params } = call
  if (body.byteLength > LARGE_BODY_BYTES) return digestOf(JSON.stringify([params?.['message'], params?.['metadata']]))
  const { message, metadata } = in10(call)
  const { messageId: _, message_id: __, ...content } = isObject(message) ? message : {}
  return digestOf(JSON.stringify([sorted(content), sorted(metadata)]))
}

function in10(call: Call): JsonObject {
  const { params = {} } = call
  if (call.protocol.wire?.version === '1.0') return params
  try {
    return translateRequest(METHODS.send, '0.3', '1.0', params) ?? params
  } catch {
    // The agent refuses it, or has its own dialect.
    return params
  }
}

/** Returns a value with the members of all its objects in order. Without a replacer, which slows `JSON.stringify`. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  const names = Object.keys(value).toSorted()
  return Object.fromEntries(names.map((name) => [name, sorted(value[name])]))
}
