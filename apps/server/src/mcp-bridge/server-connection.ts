import type { IncomingMessage } from 'node:http'
import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'

import type { ClientTls } from '../tls/client-tls.ts'

/** The HTTP connections to one server. */
export class ServerConnection {
  readonly #url: URL
  readonly #headers: Readonly<Record<string, string>>
  readonly #agent: http.Agent
  readonly #sockets = new Set<Socket>()

  /** @param token Sent as a bearer token with each request */
  constructor(url: URL, token: string | undefined, tls: ClientTls | undefined) {
    this.#url = url
    this.#headers = token === undefined ? {} : { Authorization: `Bearer ${token}` }
    // The server settles the messages of an answer when the next request arrives on its connection.
    this.#agent = new (url.protocol === 'https:' ? https : http).Agent({ ...tls, keepAlive: true })
  }

  /** Sends a message. Resolves with the head of the answer. Aborting the signal closes the connection. */
  post(body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const { request } = this.#url.protocol === 'https:' ? https : http
      const outgoing = request(this.#url, {
        method: 'POST',
        agent: this.#agent,
        headers: {
          'Content-Type': 'application/json',
          Accept: 'application/json, text/event-stream',
          ...this.#headers,
          ...headers,
        },
      })
      outgoing.once('response', (answer) => {
        // An abort between two reads would otherwise be an uncaught error; the next read rejects.
        answer.on('error', () => {})
        resolve(answer)
      })
      outgoing.on('error', reject)
      // Not the option `signal`: it would also belong to the socket, which later requests use. Without an error,
      // because nothing handles one on a socket that is just becoming idle.
      const abort = (): void => void outgoing.destroy()
      if (signal.aborted) abort()
      else signal.addEventListener('abort', abort, { once: true })
      outgoing.once('close', () => signal.removeEventListener('abort', abort))
      outgoing.once('socket', (socket) => {
        if (this.#sockets.has(socket)) return
        this.#sockets.add(socket)
        socket.once('close', () => this.#sockets.delete(socket))
      })
      outgoing.end(body)
    })
  }

  /**
   * Resets all connections. The server then knows that its last answers did not reach the host, and delivers their
   * messages again.
   */
  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy()
  }

  close(): void {
    this.#agent.destroy()
  }
}
