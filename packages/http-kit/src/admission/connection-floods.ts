import type { Buffer } from 'node:buffer'
import { EventEmitter } from 'node:events'
import type { Server, Socket } from 'node:net'
import { Duplex, Readable } from 'node:stream'
import { Server as TlsServer } from 'node:tls'

import type { HttpConnection, HttpRequest, HttpResponse } from '../surface/http-message.ts'
import { networkOf } from './trusted-proxies.ts'

// One connection can hold the event loop before any limit of its caller: Node parses everything that it reads at a time
// in one tick, 64 KiB and up to 2 MiB.

/** The most requests of a connection that may wait for the answers to earlier ones. */
const MOST_PIPELINED = 16

/** The most chunks of a body, if they are small; one more for each 128 bytes. */
const SMALL_CHUNKS = 256
const BYTES_PER_CHUNK = 128

/**
 * Returns true for a request that must not be served: its client did not wait for the answers to more than 16 earlier
 * ones, and the connection is closed. A client that sends ahead must expect that, and repeats the requests without
 * answers (RFC 9112, 9.3.2). From now on limits the chunks of the body (RFC 9112, 7.1): a request with more than 256 and
 * one for each 128 bytes is answered with 400, and its connection is closed. A server and a connector in it may both call
 * this.
 */
export function isFlood(request: HttpRequest, response: HttpResponse): boolean {
  // A response has no socket while an earlier one uses it.
  if (response.socket === null && exceedsPipeline(request.socket, response)) return true
  if (request.headers['transfer-encoding'] !== undefined) limitChunks(request, response)
  return false
}

/** The connections that were closed because of a flood. */
const floods = new WeakSet<HttpConnection>()

/** The time that a network's new connections wait for each other after a flood, in milliseconds. */
const PACED_MS = 10_000

/** The time between two of them, in milliseconds: each may send a new flood, which takes a millisecond or two. */
const PACE_MS = 20

/** The longest time that a connection waits, in milliseconds; with more ahead of it, it is closed. */
const MOST_PACE_MS = 2_000

/** The most networks that are paced; the oldest is forgotten first. */
const MOST_NETWORKS = 1_000

/**
 * Serves the new connections of a network one after another, with 20 ms between them, if another one from there was closed
 * as a flood within the last 10 s. A client that always connects again would otherwise take most of the event loop, and
 * everyone's new connections would wait behind its own: Node accepts one in each tick. With 100 ahead of it, a
 * connection is closed. Call this after the server has got all its listeners for connections except those that limit them.
 */
export function paceFloods(server: Server, isTrustedProxy: (address: string) => boolean = () => false): void {
  const paces = new Map<string, { until: number; next: number }>()
  const isPaced = ({ remoteAddress }: Socket): boolean => remoteAddress === undefined || !isTrustedProxy(remoteAddress)

  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    if (!isPaced(socket)) return
    const network = networkOf(socket.remoteAddress)
    socket.once('close', () => {
      if (!floods.has(socket)) return
      const { next } = paces.get(network) ?? { next: 0 }
      paces.delete(network)
      paces.set(network, { until: performance.now() + PACED_MS, next })
      const [oldest] = paces.keys()
      if (paces.size > MOST_NETWORKS && oldest !== undefined) paces.delete(oldest)
    })
  })

  const listeners = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    const serve = (): void => {
      for (const listener of listeners) Reflect.apply(listener, server, [socket])
    }
    const network = networkOf(socket.remoteAddress)
    const pace = isPaced(socket) ? paces.get(network) : undefined
    const now = performance.now()
    if (pace === undefined || now > pace.until) {
      serve()
      return
    }
    const next = Math.max(now, pace.next) + PACE_MS
    if (next > now + MOST_PACE_MS) {
      socket.destroy()
      return
    }
    pace.next = next
    socket.pause()
    // The server's own listener is added when it serves the connection. Without one, a reset would end the process.
    socket.on('error', ignore)
    setTimeout(() => {
      if (!server.listening) socket.destroy()
      if (socket.destroyed) return
      serve()
      socket.off('error', ignore)
      socket.resume()
    }, next - now).unref()
  })
}

function ignore(): void {}

interface Pipeline {
  waiting: number
  /** The response that was counted last. */
  last: HttpResponse
}

const pipelines = new WeakMap<HttpConnection, Pipeline>()

function exceedsPipeline(connection: HttpConnection, response: HttpResponse): boolean {
  if (connection.destroyed === true) return true
  const pipeline = pipelines.get(connection)
  if (pipeline?.last === response) return false
  const waiting = (pipeline?.waiting ?? 0) + 1
  if (waiting > MOST_PIPELINED) {
    floods.add(connection)
    failNextRequest(connection)
    connection.destroy?.()
    return true
  }
  const counted = pipeline ?? { waiting, last: response }
  counted.waiting = waiting
  counted.last = response
  pipelines.set(connection, counted)
  response.once('close', () => counted.waiting--)
  return false
}

/** Node makes a buffer of each chunk, which takes 3 µs for a byte, also after the answer. */
function limitChunks(request: HttpRequest, response: HttpResponse): void {
  if (!(request instanceof Readable) || Object.hasOwn(request, 'push')) return
  const { socket } = request
  let left = SMALL_CHUNKS
  let restore: (() => void) | undefined
  const push = request.push.bind(request)
  request.push = (chunk: Buffer | null): boolean => {
    if (chunk === null) {
      restore?.()
      return push(chunk)
    }
    left += chunk.byteLength / BYTES_PER_CHUNK - 1
    if (left >= 0) return push(chunk)
    request.push = () => false
    skipBody(socket)
    refuse(socket)
    return false
  }
  response.once('finish', () => {
    if ('complete' in request && request.complete === false) restore = skipBody(socket)
  })
}

function refuse(connection: HttpConnection): void {
  floods.add(connection)
  // An answer that was begun in this tick is written at its end, when the connection is closed.
  if (connection instanceof Duplex) while (connection.writableCorked > 0) connection.uncork()
  const error = Object.assign(new Error('the body has too many small chunks'), { code: 'ERR_SMALL_CHUNKS' })
  const server = 'server' in connection ? connection.server : undefined
  if (server instanceof EventEmitter && server.emit('clientError', error, connection)) return
  // As Node does for a server without a listener for such errors.
  if (connection instanceof Duplex) connection.write(BAD_REQUEST)
  connection.destroy?.()
}

const BAD_REQUEST = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'

// Node parses the rest of its buffer also after a close.

/** Makes the parser of a connection fail at its next request: any other number than 0, 1 and 2 is a failure. */
function failNextRequest(connection: HttpConnection): void {
  const parser = parserOf(connection)
  if (parser !== undefined) Object.assign(parser, { onIncoming: () => -1 })
}

/** The key of the function that takes each chunk (`HTTPParser.kOnBody`). */
const ON_BODY = 3

/** The connections whose end restores their parser. */
const restored = new WeakSet<HttpConnection>()

/** Makes the parser of a connection skip bodies. Returns a function that ends that; so does the end of the connection. */
function skipBody(connection: HttpConnection): (() => void) | undefined {
  const parser = parserOf(connection)
  const onBody: unknown = parser && Reflect.get(parser, ON_BODY)
  if (parser === undefined || typeof onBody !== 'function') return undefined
  Reflect.set(parser, ON_BODY, undefined)
  const restore = (): void => void Reflect.set(parser, ON_BODY, onBody)
  if (!restored.has(connection)) connection.once('close', restore)
  restored.add(connection)
  return restore
}

function parserOf(connection: HttpConnection): object | undefined {
  const parser = 'parser' in connection ? connection.parser : undefined
  return typeof parser === 'object' && parser !== null ? parser : undefined
}
