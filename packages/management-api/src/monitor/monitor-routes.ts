import type { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import process from 'node:process'
import type { Duplex } from 'node:stream'

import type { HttpRequest } from '@signalbox/http-kit'
import { unreadRoute } from '@signalbox/http-kit/fastify'
import { compileQuery } from '@signalbox/http-kit/internal'
import type { FastifyInstance } from 'fastify'
import type * as WebSockets from 'ws'
import type { WebSocket, WebSocketServer } from 'ws'

import { managementRefusal } from '../access/operator-surface.ts'
import type { OperatorRoute, OperatorSurface } from '../access/operator-surface.ts'
import { queryOf } from '../envelope.ts'
import { ManagementError, upgradeFailed } from '../errors.ts'
import { monitorFilter, monitorQuery } from './monitored-messages.ts'
import { READING_ROLE } from '../route-table.ts'
import type { Monitors } from './monitors.ts'

/** The monitor has two paths. */
export const MONITOR_PATHS = ['/api/monitor', '/v1/stats/attach'] as const

const readQuery = compileQuery(monitorQuery, (problems) => upgradeFailed('the query is invalid', { problems }))

/** Adds the live monitor: a WebSocket, available before the server is ready. */
export function addMonitorRoutes(app: FastifyInstance, surface: OperatorSurface, monitors: Monitors): void {
  const upgrades = new Upgrades(app)
  for (const path of MONITOR_PATHS) {
    const route: OperatorRoute = {
      role: READING_ROLE,
      action: path,
      async run({ exchange, operator }) {
        const upgrade = upgrades.of(exchange.request)
        if (upgrade === undefined) throw upgradeRequired(exchange.request)
        const filter = monitorFilter(readQuery(queryOf(exchange.request)))
        if (!monitors.hasRoom)
          throw new ManagementError('MONITOR_LIMIT', 'the maximum number of monitors is open; close one first')
        const refusal = exchange.hold?.toStream()
        if (refusal !== undefined) throw managementRefusal(refusal)
        await upgrades.accept(upgrade, (webSocket, stream) => {
          exchange.takeOver()
          webSocket.once('close', exchange.outliveResponse())
          monitors.add(webSocket, stream, filter, operator.expiresAt)
        })
      },
    }
    app.route({
      ...unreadRoute(path, (request, reply) => {
        takeTokenOfSubprotocols(request.raw)
        surface.serve(request, reply, route)
      }),
      method: 'GET',
      exposeHeadRoute: false,
    })
  }
}

/** Returns the refusal of a plain GET, by which clients whose handshake failed learn what is wrong with the query. */
function upgradeRequired(request: HttpRequest): ManagementError {
  let problem = ''
  try {
    monitorFilter(readQuery(queryOf(request)))
  } catch (error) {
    if (!(error instanceof ManagementError)) throw error
    problem = `; ${error.message}`
  }
  const text = `this path serves WebSockets only; connect with a WebSocket client${problem}`
  return new ManagementError('UPGRADE_REQUIRED', text)
}

const require = createRequire(import.meta.url)
// An import of node:http in an ES module also loads the HTTP client of `fetch`, 40 ms of a start.
const http = process.getBuiltinModule('node:http')

/** An upgrade request, its socket, the bytes after its head, and the response that may still refuse it. */
interface Upgrade {
  readonly request: IncomingMessage
  readonly socket: Socket
  readonly head: Buffer
  readonly response: ServerResponse
}

/** The largest frame of a client, in bytes. Commands are one word. */
const MAX_CLIENT_FRAME_BYTES = 1_024

/**
 * Routes WebSocket handshakes like ordinary requests: they pass the hooks and routes of the
 * listener, so that origins, credentials and unknown paths are checked in one place, and a refusal
 * is an ordinary answer.
 */
class Upgrades {
  readonly #upgrades = new WeakMap<HttpRequest, Upgrade>()
  readonly #refusals = new WeakMap<IncomingMessage, (error: Error) => void>()
  #server: WebSocketServer | undefined

  constructor(app: FastifyInstance) {
    app.server.on('upgrade', (request, socket, head) => this.#route(app, request, socket, head))
  }

  /** Loads the library at the first handshake: a server without monitors does not need it. */
  #webSockets(): WebSocketServer {
    if (this.#server) return this.#server
    const library: typeof WebSockets = require('ws')
    const server = new library.WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: MAX_CLIENT_FRAME_BYTES,
      perMessageDeflate: false,
      handleProtocols: selectSubprotocol,
      // The monitor limits the bytes that wait for its reader, including answers to pings.
      autoPong: false,
      // One frame in a tick: a read of 64 KiB may have 10,000.
      allowSynchronousEvents: false,
    })
    server.on('wsClientError', (error, _socket, request) => this.#refusals.get(request)?.(error))
    return (this.#server = server)
  }

  #route(app: FastifyInstance, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // After an upgrade node has no error listener on the connection, and an unhandled error ends
    // the process.
    socket.on('error', () => socket.destroy())
    if (!(socket instanceof Socket)) {
      socket.destroy()
      return
    }
    const response = new http.ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    response.once('finish', () => socket.end())
    this.#upgrades.set(request, { request, socket, head, response })
    app.routing(request, response)
  }

  /** Returns the upgrade that a request asks for; undefined if it asks for none. */
  of(request: HttpRequest): Upgrade | undefined {
    return this.#upgrades.get(request)
  }

  /**
   * Upgrades the connection to a WebSocket. `opened` is called before data is read from it.
   * @throws ManagementError UPGRADE_FAILED; the request can still be answered then
   */
  async accept(
    { request, socket, head, response }: Upgrade,
    opened: (webSocket: WebSocket, stream: Socket) => void,
  ): Promise<void> {
    try {
      await new Promise<void>((resolve, reject) => {
        this.#refusals.set(request, reject)
        this.#webSockets().handleUpgrade(request, socket, head, (webSocket) => {
          response.detachSocket(socket)
          opened(webSocket, socket)
          resolve()
        })
      })
    } catch (error) {
      throw upgradeFailed(error instanceof Error ? error.message : 'the handshake is invalid', {}, { cause: error })
    }
  }
}

/** The subprotocol of the monitor. A client that sends a token offers it too, and the server selects it. */
const MONITOR_SUBPROTOCOL = 'signalbox.monitor'

/** The prefix of the subprotocol that carries a token. */
const BEARER_SUBPROTOCOL = 'signalbox.bearer.'

/**
 * Makes the token among the subprotocols of a handshake its Authorization header. Browsers cannot set
 * that header for a WebSocket, and a token in the address would be in logs. A request with both has
 * two Authorization headers, which authenticators refuse.
 */
function takeTokenOfSubprotocols({ headers, rawHeaders }: IncomingMessage): void {
  const offered = headers['sec-websocket-protocol']
  if (offered === undefined || !offered.includes(BEARER_SUBPROTOCOL)) return
  const protocols = offered.split(',').map((protocol) => protocol.trim())
  const tokens = protocols.filter((protocol) => protocol.startsWith(BEARER_SUBPROTOCOL))
  for (const token of tokens) {
    const authorization = `Bearer ${token.slice(BEARER_SUBPROTOCOL.length)}`
    headers.authorization ??= authorization
    rawHeaders.push('Authorization', authorization)
  }
  const others = protocols.filter((protocol) => !tokens.includes(protocol))
  if (others.length === 0) delete headers['sec-websocket-protocol']
  else headers['sec-websocket-protocol'] = others.join(', ')
}

/** Returns the subprotocol of the answer: that of the monitor if it is offered, otherwise the first. */
function selectSubprotocol(offered: ReadonlySet<string>): string | false {
  if (offered.has(MONITOR_SUBPROTOCOL)) return MONITOR_SUBPROTOCOL
  const [first = false] = offered
  return first
}
