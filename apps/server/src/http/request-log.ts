import type { IncomingMessage, ServerResponse } from 'node:http'

import type { AuthenticationRequest, HttpRequest, Identity, TrustedProxies } from '@signalbox/http-kit'
import { addressOf, spanOf } from '@signalbox/http-kit/internal'

import type { Logger } from '../logging/logger.ts'
import { peerName } from '../security/tls.ts'

/** The longest path in the log, in characters. */
const MAX_PATH = 256

/**
 * The data of the log line, stored on the request itself: an entry in a `WeakMap` makes garbage
 * collections longer.
 */
const ENTRY = Symbol('log entry')

interface Entry {
  readonly id: string
  readonly startedAt: number
  readonly address: string | undefined
  client: string | undefined
}

interface Logged {
  [ENTRY]?: Entry
}

/**
 * Logs a line for each request when it ends; for a stream, when the stream ends. The query string
 * is left out: it may contain receipts and other confidential values.
 */
export class RequestLog {
  readonly #proxies: TrustedProxies
  #count = 0
  readonly #closed: (this: ServerResponse<IncomingMessage & Logged>) => void

  constructor(log: Logger, proxies: TrustedProxies) {
    this.#proxies = proxies
    // These lines contain no secrets, and searching for them would be three quarters of their cost.
    const lines = log.child({}, { redact: [] })
    // One function for all requests; node calls it on the response.
    this.#closed = function closed() {
      const { req: request, statusCode: status } = this
      const entry = request[ENTRY]
      if (entry === undefined) return
      const { id, startedAt, address, client } = entry
      const ms = Math.round((performance.now() - startedAt) * 1000) / 1000
      const { method, socket } = request
      const path = pathOf(request)
      const trace = traceIdOf(request)
      const peer = peerName(socket)
      lines.info({ id, method, path, status, ms, client, address, trace, ...spanFields(request), peer }, 'request')
    }
  }

  /** Records the verified caller of a request. For the authenticator. */
  readonly verified = (request: AuthenticationRequest & Logged, { clientId }: Identity): void => {
    const entry = request[ENTRY]
    if (entry !== undefined) entry.client = clientId
  }

  /** Begins a request. Its line is logged when the response is closed. */
  readonly begin = (request: IncomingMessage & Logged, response: ServerResponse): void => {
    this.#proxies.locate(request)
    request[ENTRY] = {
      id: `req-${(++this.#count).toString(36)}`,
      startedAt: performance.now(),
      address: addressOf(request),
      client: undefined,
    }
    // Not Fastify's own hook, which is not called for clients that disconnect, and so for most streams.
    response.on('close', this.#closed)
  }
}

/**
 * Returns a function that logs, at level debug, a request whose connection is closed before its answer is sent
 * completely; undefined if the level is off.
 */
export function brokenRequestLog(
  log: Logger,
): ((request: IncomingMessage, response: ServerResponse) => void) | undefined {
  if (!log.isLevelEnabled('debug')) return undefined
  function closed(this: ServerResponse): void {
    if (this.writableFinished) return
    const { req: request } = this
    const at = !request.complete ? 'in its request' : this.headersSent ? 'in its answer' : 'before its answer'
    log.debug({ method: request.method, path: pathOf(request), at, address: addressOf(request) }, 'client disconnected')
  }
  return (_request, response) => response.on('close', closed)
}

/** Returns the request's fields for a log line about a failure. `id` is set if requests are logged. */
export function requestFields(request: (HttpRequest & Logged) | undefined): Readonly<Record<string, unknown>> {
  if (request === undefined) return {}
  return { id: request[ENTRY]?.id, method: request.method, path: pathOf(request), ...spanFields(request) }
}

/** Returns the fields that lead from a log line to the span of its request, by the names that tracing systems expect. */
function spanFields(request: HttpRequest): Readonly<Record<string, string>> {
  const span = spanOf(request)
  if (span === undefined) return {}
  const { traceId, spanId, flags } = span.context
  return { trace_id: traceId, span_id: spanId, trace_flags: flags.toString(16).padStart(2, '0') }
}

/** Returns the trace id that the caller sent (W3C Trace Context). */
function traceIdOf({ headers: { traceparent } }: HttpRequest): string | undefined {
  if (typeof traceparent !== 'string') return undefined
  return /^[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-[\da-f]{2}(?:-|$)/.exec(traceparent)?.[1]
}

/** Returns the path of a request for the log, without the query string, which may contain receipts. */
function pathOf({ url = '/' }: HttpRequest): string {
  const mark = url.indexOf('?')
  const path = mark === -1 ? url : url.slice(0, mark)
  return path.length > MAX_PATH ? `${path.slice(0, MAX_PATH)}…` : path
}
