import { Buffer } from 'node:buffer'
import type { OutgoingHttpHeaders } from 'node:http'

import { Refusal } from '../admission/refusal.ts'
import { networkOf } from '../admission/trusted-proxies.ts'
import { RefusedError, JSON_RPC_CODES, JsonRpcError } from '../errors.ts'
import type { HttpRequest, HttpResponse } from './http-message.ts'
import { BodyBytes, ReadingTurns } from './reading.ts'

/** The default of the setting `MAX_BODY_BYTES`, in bytes: 10 MiB. */
export const DEFAULT_MAX_BODY_BYTES = 10_485_760

/** Bytes that are read from the body of a refused request, only to echo its id. */
export const REFUSED_BODY_BYTES = 65_536

const JSON_TYPES = ['application/json']

/**
 * Checks the headers of a request with a JSON body: no Content-Encoding, and one of the types in UTF-8.
 * @param types The allowed media types, in lower case. @default only `application/json`
 * @returns the error to answer with: -32600 with status 415, or -32700
 */
export function jsonHeadersProblem(
  headers: HttpRequest['headers'],
  types: readonly string[] = JSON_TYPES,
): JsonRpcError | undefined {
  const encoding = headers['content-encoding']
  if (encoding !== undefined) {
    return new JsonRpcError(
      JSON_RPC_CODES.INVALID_REQUEST,
      'invalid request: Content-Encoding is not supported; send the body without it',
      { status: 415 },
    )
  }
  const type = headers['content-type']
  if (type === 'application/json' || (type !== undefined && isOneOf(types, type))) return undefined
  return new JsonRpcError(
    JSON_RPC_CODES.PARSE_ERROR,
    `parse error: Content-Type must be ${types.join(' or ')} (charset utf-8)`,
  )
}

/** The most characters of a Content-Type. */
const MAX_CONTENT_TYPE = 256

const UTF8: ReadonlySet<string> = new Set(['utf-8', 'utf8', '"utf-8"', '"utf8"'])

/** Returns `true` for one of the types without parameters, or with `charset=utf-8` only. */
function isOneOf(types: readonly string[], text: string): boolean {
  if (text.length > MAX_CONTENT_TYPE) return false
  const parts = text.split(';').map((part) => part.trim().toLowerCase())
  const [type = '', parameter = '', rest = ''] = parts
  if (!types.includes(type) || rest !== '' || parts.length > (parameter === '' ? 2 : 3)) return false
  if (parameter === '') return true
  const equals = parameter.indexOf('=')
  return parameter.slice(0, equals).trimEnd() === 'charset' && UTF8.has(parameter.slice(equals + 1).trimStart())
}

/** Counts the bytes of a body while they are read. Reading stops when the budget refuses. */
export interface BodyBudget {
  /** The account of the caller, for which large bodies are read in turns. @default they are read at once */
  readonly account?: { readonly key: string }
  charge(bytes: number): Refusal | undefined
  /** Returns the refusal of a body of this size; called before the body is read. */
  refusesBody(bytes: number): Refusal | undefined
}

/** Smaller bodies are read at once, in bytes. */
const TURN_BYTES = 65_536

function tooLarge(limit: number): Refusal {
  return new Refusal('body_too_large', `the body is larger than the limit of ${limit} bytes`, { maxBodyBytes: limit })
}

/**
 * Reads a request's body. `done` is called at most once: with the bytes, or with a refusal as soon as the body
 * exceeds `limit` or the budget. It is not called if the client disconnects first. Takes the body from `request.body`
 * if the host has read it.
 * @throws Error if the host has read the body and not kept it
 */
export function readBody(
  request: HttpRequest,
  limit: number,
  done: (refusal: Refusal | undefined, body: Buffer) => void,
  budget?: BodyBudget,
): void {
  const declared = Number(request.headers['content-length'] ?? 0)
  const refusal = declared > limit ? tooLarge(limit) : budget?.refusesBody(declared)
  if (refusal !== undefined) {
    done(refusal, EMPTY)
    return
  }
  if (isRead(request)) {
    takeKept(request, limit, done, budget)
    return
  }
  const body = new BodyBytes(limit)
  const account = budget?.account
  let turns: ReadingTurns | undefined
  // The declared length is counted with the first byte. Otherwise several bodies that arrive at the same time and do
  // not all fit would each get a part of the budget, and none would complete.
  let taken = 0
  const take = (bytes: number): Refusal | undefined => {
    if (bytes <= taken) return undefined
    const more = Math.max(bytes, declared, Math.min(2 * taken, limit)) - taken
    taken += more
    return budget?.charge(more) ?? budget?.refusesBody(taken)
  }
  const onData = (chunk: Buffer): void => {
    const bytes = body.length + chunk.byteLength
    const over = bytes > limit ? tooLarge(limit) : take(bytes)
    if (over !== undefined) {
      leave()
      body.clear()
      done(over, EMPTY)
      return
    }
    body.add(chunk, taken)
    if (account === undefined || bytes <= TURN_BYTES) return
    turns ??= new ReadingTurns(account.key)
    turns.read(chunk.byteLength, request)
  }
  const onEnd = (): void => {
    leave()
    done(undefined, body.take())
  }
  // The request may wait for its answer for a long time, and would keep what the listeners need in memory.
  const leave = (): void => {
    request.off('data', onData)
    request.off('end', onEnd)
  }
  request.on('data', onData)
  request.on('end', onEnd)
}

const EMPTY = Buffer.alloc(0)

/** Gives a body that the host has read. */
function takeKept(
  request: HttpRequest,
  limit: number,
  done: (refusal: Refusal | undefined, body: Buffer) => void,
  budget: BodyBudget | undefined,
): void {
  let body: Buffer
  try {
    body = keptBody(request)
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    done(error.refusal, EMPTY)
    return
  }
  const refusal = body.byteLength > limit ? tooLarge(limit) : budget?.charge(body.byteLength)
  done(refusal, refusal === undefined ? body : EMPTY)
}

/** Returns the number of bytes that may still arrive. */
function expectedBytes({ headers, readableEnded }: HttpRequest): number {
  if (readableEnded) return 0
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity
}

/** Bytes of an unwanted body that are discarded, and the time for it in ms, before the connection is closed. */
const LINGER_BYTES = 16 * 1024 * 1024
export const LINGER_MS = 2_000

/** A discarded byte costs a part of one that is kept: it takes no new memory. */
const DISCARD_COST = 1 / 4

/**
 * Answers a request whose body is not needed. The rest of the body is discarded, within bounds, and then the
 * connection is closed. Closing it at once would reset it, and a client that is still sending would never see the
 * answer. After a short body that arrives in time, the connection stays open. Discarding takes turns by network: 100
 * refused bodies that came at once would keep the event loop busy for seconds.
 */
export function refuseBody(
  request: HttpRequest,
  response: HttpResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  text: string,
): void {
  const expected = expectedBytes(request)
  if (expected === 0) {
    response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(text) })
    response.end(text)
    return
  }
  const large = expected > REFUSED_BODY_BYTES
  const closes = large ? { Connection: 'close' } : {}
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(text), ...closes })
  response.write(text)
  const turns = new ReadingTurns(`discard ${networkOf(request.socket.remoteAddress)}`)
  let discarded = 0
  const finish = (): void => {
    clearTimeout(timer)
    request.off('data', onData)
    response.end()
  }
  const onData = (chunk: Buffer): void => {
    discarded += chunk.byteLength
    if (discarded > LINGER_BYTES) finish()
    else turns.read(chunk.byteLength * DISCARD_COST, request)
  }
  const giveUp = (): void => {
    finish()
    if (!large) response.destroy()
  }
  const timer = setTimeout(giveUp, LINGER_MS)
  timer.unref()
  request.on('data', onData)
  request.once('end', finish)
  request.once('close', finish)
  request.on('error', finish)
  request.resume()
}

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
 * @throws Error if the host did not keep the body, {@link RefusedError} if it is nested too deeply
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

/** Returns the bytes of a body that is text, bytes, or parsed from JSON. @throws RefusedError */
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
    throw new RefusedError(new Refusal('body_too_large', 'the body is nested too deeply', { cause }))
  }
}
