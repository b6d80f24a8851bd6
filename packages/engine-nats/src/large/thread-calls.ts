import type { Msg, MsgHdrs } from '@nats-io/transport-node'
import { errors, headers } from '@nats-io/transport-node'

// cspell:ignore Hdrs

/** A message from the servers, whichever connection it came on. */
export interface Received extends Pick<Msg, 'subject' | 'reply' | 'data'> {
  readonly headers?: ReceivedHeaders
}

/** The headers of a message, and its status: a code of 0 means none. */
type ReceivedHeaders = Pick<MsgHdrs, 'code' | 'description' | 'has'> & { get(name: string): string }

export type HeaderValues = readonly (readonly [name: string, value: string])[]

/** Returns the headers of a message to send. */
export function headersOf(values: HeaderValues): MsgHdrs {
  const made = headers()
  for (const [name, value] of values) made.set(name, value)
  return made
}

/** A request of the engine to the thread. */
export type ThreadCall =
  | {
      readonly kind: 'request'
      readonly id: number
      readonly subject: string
      readonly payload: Uint8Array | string
      readonly headers: HeaderValues
      readonly timeoutMs: number
    }
  | {
      readonly kind: 'publish'
      readonly subject: string
      readonly payload: Uint8Array | string
      readonly reply: string
    }
  | { readonly kind: 'subscribe' | 'unsubscribe'; readonly subject: string }
  /** Ends a subscription after the messages that the servers have sent already. */
  | { readonly kind: 'drain'; readonly id: number; readonly subject: string }

/** A message as the thread passes it on. */
interface PassedMessage {
  readonly subject: string
  readonly reply: string | undefined
  readonly data: Uint8Array
  readonly headers: { readonly code: number; readonly description: string; readonly values: HeaderValues } | undefined
}

/** The ways in which a request fails that the engine distinguishes. */
type Failure = 'timeout' | 'no-responders' | 'forbidden' | 'other'

/** A message of the thread to the engine. */
export type ThreadNews =
  | { readonly kind: 'connected' }
  | { readonly kind: 'disconnected' }
  | { readonly kind: 'problem'; readonly message: string }
  | { readonly kind: 'answer'; readonly id: number; readonly message: PassedMessage }
  | { readonly kind: 'failed'; readonly id: number; readonly failure: Failure; readonly message: string }
  | { readonly kind: 'drained'; readonly id: number }
  /** A message of a subscription, by the subject of that. */
  | { readonly kind: 'message'; readonly subscription: string; readonly message: PassedMessage }

/** A buffer may have this many times the bytes of the message that moves with it: the client library doubles its own. */
const MOST_SLACK = 3
/** The size of the chunks that a socket returns, in bytes: a buffer of this size may contain other messages. */
const CHUNK_BYTES = 65_536

/** Returns a message of the client library to pass on, and the buffer that moves to the engine. */
export function passed({ subject, reply, data, headers: given }: Msg): {
  readonly message: PassedMessage
  readonly moved: ArrayBuffer[]
} {
  const isAlone = data.buffer.byteLength > CHUNK_BYTES && data.buffer.byteLength <= MOST_SLACK * data.byteLength
  const own = isAlone && data.buffer instanceof ArrayBuffer ? data : new Uint8Array(data)
  const values = given === undefined ? [] : given.keys().map((name) => [name, given.get(name)] as const)
  const passedHeaders = given && { code: given.code, description: given.description, values }
  const moved = own.buffer instanceof ArrayBuffer ? [own.buffer] : []
  // A buffer of Node is cloned as plain bytes.
  return { message: { subject, reply, data: own, headers: passedHeaders }, moved }
}

/** Returns a passed message as the engine uses those of the client library. */
export function receivedFrom({ subject, reply, data, headers: given }: PassedMessage): Received {
  const message = { subject, data, ...(reply !== undefined && { reply }) }
  if (!given) return message
  const { code, description } = given
  const values = new Map(given.values)
  const has = (name: string): boolean => values.has(name)
  return { ...message, headers: { code, description, has, get: (name) => values.get(name) ?? '' } }
}

/** Returns the failure of a request to pass on. */
export function failureOf(error: unknown): { readonly failure: Failure; readonly message: string } {
  let failure: Failure = 'other'
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof errors.TimeoutError) failure = 'timeout'
    if (cause instanceof errors.NoRespondersError) failure = 'no-responders'
    if (cause instanceof errors.RequestError && cause.isNoResponders()) failure = 'no-responders'
    if (cause instanceof errors.PermissionViolationError) failure = 'forbidden'
  }
  return { failure, message: error instanceof Error ? error.message : String(error) }
}

/** Returns the error of the client library for a passed failure. */
export function errorFrom(failure: Failure, message: string, subject: string): Error {
  if (failure === 'timeout') return new errors.TimeoutError()
  if (failure === 'no-responders') return new errors.NoRespondersError(subject)
  if (failure === 'forbidden') return new errors.PermissionViolationError(message, 'publish', subject)
  return new Error(message)
}

/** Returns a payload that can move with its buffer: a copy, if the buffer may have other content, as that of a pool has. */
export function movable(payload: Uint8Array | string): {
  readonly own: Uint8Array | string
  readonly moved: ArrayBuffer[]
} {
  if (typeof payload === 'string') return { own: payload, moved: [] }
  const { buffer, byteLength } = payload
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) return { own: payload, moved: [buffer] }
  const own = new Uint8Array(payload)
  return { own, moved: [own.buffer] }
}
