import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer, request } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'

import { onTestFinished } from 'vitest'

/** What a proxy was asked: `POST http://…` or `CONNECT host:port`. */
export interface ProxyRequest {
  readonly line: string
  readonly host: string | undefined
  readonly authorization: string | undefined
}

/** A forward proxy on bare node:http. It finds every name at 127.0.0.1. */
export interface ForwardProxy {
  readonly port: number
  readonly asked: ProxyRequest[]
  /** Connections to it that are open now. */
  readonly sockets: ReadonlySet<Socket>
}

export interface ForwardProxyOptions {
  /** What it does in place of forwarding. */
  readonly refuse?: (request: IncomingMessage, socket: Duplex) => void
}

export async function startForwardProxy({ refuse }: ForwardProxyOptions = {}): Promise<ForwardProxy> {
  const asked: ProxyRequest[] = []
  const sockets = new Set<Socket>()
  const outward = new Set<Socket>()
  const note = ({ method, url, headers }: IncomingMessage): void => {
    const { host, 'proxy-authorization': authorization } = headers
    asked.push({ line: `${method} ${url}`, host, authorization })
  }
  const server = createServer((incoming, response) => {
    const target = URL.parse(incoming.url ?? '')
    if (target === null) {
      // A port may have been another test's a moment ago, and what its callers still send is for no proxy.
      response.writeHead(400).end()
      return
    }
    note(incoming)
    if (refuse !== undefined) {
      refuse(incoming, incoming.socket)
      return
    }
    const { port, pathname, search } = target
    const { 'proxy-authorization': _, ...headers } = incoming.headers
    const options = { host: '127.0.0.1', port, path: pathname + search, method: incoming.method ?? 'GET', headers }
    const onward = request({ ...options, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.writeHead(502).end())
    incoming.pipe(onward)
  })
  server.on('connect', (incoming: IncomingMessage, socket: Duplex) => {
    note(incoming)
    socket.on('error', () => {})
    // Half of a connection would stay open otherwise.
    socket.on('end', () => socket.end())
    if (refuse !== undefined) {
      socket.resume()
      refuse(incoming, socket)
      return
    }
    const onward = connect(Number(incoming.url?.split(':').at(-1)), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.pipe(onward).pipe(socket)
    })
    outward.add(onward)
    onward.on('error', () => socket.destroy())
    socket.on('close', () => onward.destroy())
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    for (const socket of [...sockets, ...outward]) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, asked, sockets }
}
