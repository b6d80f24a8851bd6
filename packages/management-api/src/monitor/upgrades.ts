import type { Buffer } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import process from 'node:process'
import type { Duplex } from 'node:stream'

import type { FastifyInstance, FastifyRequest } from 'fastify'
import type * as WebSockets from 'ws'
import type { WebSocket, WebSocketServer } from 'ws'

import { upgradeFailed } from '../errors.ts'
import { selectSubprotocol } from './subprotocols.ts'

const require = createRequire(import.meta.url)
// An import of node:http in an ES module also loads the HTTP client of `fetch`, 40 ms of a start.
const http = process.getBuiltinModule('node:http')

/**
 * The socket of an upgrade request, the bytes after its head, and the response that may still
 * refuse it.
 */
interface Upgrade {
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
export class Upgrades {
  readonly #upgrades = new WeakMap<IncomingMessage, Upgrade>()
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
    this.#upgrades.set(request, { socket, head, response })
    app.routing(request, response)
  }

  /** Returns the upgrade that a request asks for; undefined if it asks for none. */
  of({ raw }: FastifyRequest): Upgrade | undefined {
    return this.#upgrades.get(raw)
  }

  /**
   * Upgrades the connection to a WebSocket. `opened` is called before data is read from it.
   * @throws ManagementError UPGRADE_FAILED; the request can still be answered then
   */
  async accept(
    { raw }: FastifyRequest,
    { socket, head, response }: Upgrade,
    opened: (webSocket: WebSocket, stream: Socket) => void,
  ): Promise<void> {
    try {
      await new Promise<void>((resolve, reject) => {
        this.#refusals.set(raw, reject)
        this.#webSockets().handleUpgrade(raw, socket, head, (webSocket) => {
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
