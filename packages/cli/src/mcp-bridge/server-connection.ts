import { Buffer } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'

import type { ClientTls } from '../tls.ts'
import type { HostMessage } from './host-messages.ts'

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

/** The state that `initialize` establishes in the older revisions. */
export interface Session {
  readonly version: string | undefined
  readonly id: string | undefined
}

/** The member of `params` that `Mcp-Name` repeats, by method. */
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/** Returns the headers that the transport of the message's revision needs over HTTP. */
export function requestHeaders(message: HostMessage, session: Session): Record<string, string> {
  const { revision, method, params } = message
  if (revision === undefined) {
    return {
      ...(session.version === undefined ? {} : { 'MCP-Protocol-Version': session.version }),
      ...(session.id === undefined ? {} : { 'MCP-Session-Id': session.id }),
    }
  }
  const member = method === undefined ? undefined : NAMED_BY[method]
  const name = member === undefined ? undefined : params?.[member]
  return {
    'MCP-Protocol-Version': headerValue(revision),
    ...(method === undefined ? {} : { 'Mcp-Method': headerValue(method) }),
    ...(typeof name === 'string' ? { 'Mcp-Name': headerValue(name) } : {}),
  }
}

/** Visible ASCII with blanks only inside, which intermediaries do not change. */
const PLAIN = /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/

/** Returns a value as a header can carry it: text that is not plain, or looks encoded, is encoded as base64. */
function headerValue(value: string): string {
  if (PLAIN.test(value) && !value.startsWith('=?base64?')) return value
  return `=?base64?${Buffer.from(value).toString('base64')}?=`
}

/** Yields the data of each event in a stream of server-sent events. Comments and other fields are skipped. */
export async function* eventsOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let buffer = ''
  let data: string[] = []
  for await (const chunk of stream) {
    buffer += decoder.decode(chunk, { stream: true })
    const lines = buffer.split(/\r\n|\n|\r(?!$)/)
    buffer = lines.pop() ?? ''
    for (const line of lines) {
      if (line.startsWith('data:')) data.push(line.slice(line.startsWith('data: ') ? 6 : 5))
      else if (line === '' && data.length > 0) {
        yield data.join('\n')
        data = []
      }
    }
  }
}
