import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

import { onTestFinished } from 'vitest'

/** A request as an agent got it. */
export interface Asked {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly socket: Socket
}

/** What an agent does with a request; it may do anything, or nothing, with the response. */
export type Script = (asked: Asked, response: ServerResponse, request: IncomingMessage) => unknown

/** An agent on a bare HTTP server, which does what its script says. */
export interface ScriptedAgent {
  readonly url: string
  readonly port: number
  /** Every request it was sent, in their order. */
  readonly asked: Asked[]
  /** What it does from now on. */
  script: Script
  /** Connections that are open now. */
  connections(): Promise<number>
  /** Resolves when so many requests have arrived. */
  reached(count: number): Promise<void>
  close(): Promise<void>
}

/** @param at The port to listen on. @default any */
export async function startAgent(script: Script = echo, at = 0): Promise<ScriptedAgent> {
  const sockets = new Set<Socket>()
  let told = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => {})
    response.on('error', () => {})
    request.on('end', () => {
      const { method = '', url = '', headers, socket } = request
      const asked: Asked = { method, url, headers, socket, body: Buffer.concat(chunks).toString() }
      agent.asked.push(asked)
      told.resolve()
      told = Promise.withResolvers()
      try {
        agent.script(asked, response, request)
      } catch (error) {
        // A port may have been another test's a moment ago: what its callers still send must not end the process.
        json(response, String(error), 500)
      }
    })
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(at, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const agent: ScriptedAgent = {
    url: `http://127.0.0.1:${port}/`,
    port,
    asked: [],
    script,
    connections: async () => sockets.size,
    async reached(count) {
      while (agent.asked.length < count) await told.promise
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      if (!server.listening) return
      server.close()
      await once(server, 'close')
    },
  }
  onTestFinished(() => agent.close())
  return agent
}

/** Answers with what it was asked as `result`. */
export const echo: Script = ({ body }, response) => {
  const { id = null } = JSON.parse(body) as { id?: unknown }
  json(response, `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${body}}`)
}

export function json(response: ServerResponse, text: string | Buffer, status = 200): void {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) })
  response.end(text)
}

/** Answers every request like this. */
export function always(text: string | Buffer, status = 200, headers: Record<string, string> = {}): Script {
  return (_asked, response) => {
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers })
    response.end(text)
  }
}

/** Answers every request with this `result`, JSON text. */
export function result(text: string): Script {
  return always(`{"jsonrpc":"2.0","id":1,"result":${text}}`)
}

/** Takes the request and says nothing. */
export const hang: Script = () => {}
