import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

import type { NodeHandler } from '@signalbox/http-kit'
import { isFlood } from '@signalbox/http-kit/internal'

import type { Health } from '../health/health.ts'
import type { Answer } from '../http/answers.ts'
import { closeWhenUnread, NOT_FOUND, PROBES, sendAnswer, textAnswer } from '../http/answers.ts'
import type { Cors } from '../http/cors.ts'
import type { Logger } from '../logging/logger.ts'

export interface RouterOptions {
  readonly health: Health
  readonly log: Logger
  /** Returns the answer to a request for no route. */
  readonly unknown: (request: IncomingMessage) => Answer
  /** @default none */
  readonly cors?: Cors
  /** Called for each request before it is answered. @default none */
  readonly before?: readonly ((request: IncomingMessage, response: ServerResponse) => void)[]
}

export interface RouteOptions {
  /**
   * The connector itself refuses the calls of tools while the server shuts down, and closes their connections if a body
   * does not arrive. @default false
   */
  readonly refuses?: boolean
  /** The connector compares paths as they are sent: it gets them decoded. @default false */
  readonly decoded?: boolean
}

interface Route extends RouteOptions {
  readonly handler: NodeHandler
}

/** The methods of routes. Others are unknown at every path. */
const METHODS: ReadonlySet<string | undefined> = new Set([
  'GET',
  'HEAD',
  'TRACE',
  'DELETE',
  'OPTIONS',
  'PATCH',
  'PUT',
  'POST',
  'QUERY',
])

/** The routes of the shared listener: those of the connectors, CORS and the probes. */
export class Router {
  readonly #health: Health
  readonly #log: Logger
  readonly #unknown: RouterOptions['unknown']
  readonly #cors: Cors | undefined
  readonly #before: NonNullable<RouterOptions['before']>
  readonly #paths = new Map<string, Route>()
  readonly #prefixes: (readonly [prefix: string, route: Route])[] = []
  #closing = false

  constructor({ health, log, unknown, cors, before = [] }: RouterOptions) {
    this.#health = health
    this.#log = log
    this.#unknown = unknown
    this.#cors = cors
    this.#before = before
  }

  /** Adds a path. One that ends in `/` stands for every path that begins with it. */
  add(path: string, handler: NodeHandler, options: RouteOptions = {}): void {
    const route = { ...options, handler }
    if (path.endsWith('/')) this.#prefixes.push([path, route])
    else this.#paths.set(path, route)
  }

  /** Refuses further requests, except those that a connector refuses itself. */
  close(): void {
    this.#closing = true
  }

  /** Answers a request. */
  readonly listener: RequestListener = (request, response) => {
    if (isFlood(request, response)) return
    const { method, url = '/' } = request
    const target = targetOf(url)
    if (target === undefined) {
      closeWhenUnread(request, response)
      sendAnswer(request, response, NOT_FOUND)
      return
    }
    const { path, query } = target
    const route = METHODS.has(method) ? this.#find(path) : undefined
    const isToolCall = method === 'POST' && request.headers.origin === undefined && route?.refuses === true
    if (this.#closing && !isToolCall) {
      refuse(response)
      return
    }
    if (!isToolCall) closeWhenUnread(request, response)
    for (const before of this.#before) before(request, response)
    const headers = this.#cors?.(request)
    if (method === 'OPTIONS' && headers !== undefined) {
      response.writeHead(204, { ...headers, 'content-length': '0' }).end()
      return
    }
    if (route === undefined) {
      this.#answer(request, response, path, headers)
      return
    }
    if (route.decoded === true) request.url = `${path}${query}`
    else if (target.url !== undefined) request.url = target.url
    try {
      route.handler(request, response, headers)
    } catch (error) {
      this.#fail(request, response, error, headers)
    }
  }

  #find(path: string): Route | undefined {
    return this.#paths.get(path) ?? this.#prefixes.find(([prefix]) => path.startsWith(prefix))?.[1]
  }

  /** Answers requests that are not for a connector. */
  #answer(request: IncomingMessage, response: ServerResponse, path: string, headers: ReturnType<Cors>): void {
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const probe = isRead ? PROBES.get(path) : undefined
    if (probe === undefined) {
      sendAnswer(request, response, this.#unknown(request), headers)
      return
    }
    probe(this.#health).then(
      (answer) => sendAnswer(request, response, answer, headers),
      (error: unknown) => this.#fail(request, response, error, headers),
    )
  }

  #fail(request: IncomingMessage, response: ServerResponse, error: unknown, headers: ReturnType<Cors>): void {
    this.#log.error({ err: error }, 'request failed')
    if (response.headersSent) response.destroy()
    else sendAnswer(request, response, textAnswer(500, 'internal error'), headers)
  }
}

/** The path of a request, decoded as far as it decides the route, and its query with the mark. */
interface Target {
  readonly path: string
  readonly query: string
  /** The target in the usual form, if the client sent another one. */
  readonly url: string | undefined
}

/** Returns the target of a request; `undefined` if its path cannot be decoded. */
function targetOf(sent: string): Target | undefined {
  const authority = sent.startsWith('/') ? undefined : /^https?:\/\/[^/?#]*/i.exec(sent)?.[0]
  const absolute = authority === undefined ? undefined : sent.slice(authority.length)
  let url = absolute ?? sent
  if (absolute !== undefined && !url.startsWith('/')) url = `/${url}`
  const fragment = url.indexOf('#')
  if (fragment !== -1) url = url.slice(0, fragment)
  const mark = url.indexOf('?')
  const encoded = mark === -1 ? url : url.slice(0, mark)
  const query = mark === -1 ? '' : url.slice(mark)
  try {
    const path = encoded.includes('%') ? decodeURI(encoded) : encoded
    return { path, query, url: url === sent ? undefined : url }
  } catch {
    return undefined
  }
}

const CLOSING = '{"error":"Service Unavailable","message":"Service Unavailable","statusCode":503}'

/** Refuses a request on a connection that was open when the shutdown began. */
function refuse(response: ServerResponse): void {
  response.setHeader('Connection', 'close')
  response.writeHead(503, { 'Content-Type': 'application/json', 'Content-Length': String(CLOSING.length) })
  response.end(CLOSING)
}
