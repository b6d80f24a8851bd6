import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import { ANONYMOUS, createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import type { HttpBindings } from '@hono/node-server'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { onTestFinished } from 'vitest'

import type { McpConnector, McpConnectorOptions, McpRequestEvent } from '../src/index.ts'
import { createMcpFetchHandler } from '../src/index.ts'
import { mcpConnector } from '../src/fastify.ts'

export const HOST_KINDS = ['fastify', 'node', 'express', 'hono'] as const

/** The hosts that leave the body to the endpoint, which then answers every malformed one. */
export const UNREAD_KINDS = ['fastify', 'node', 'hono'] as const

export type HostKind = (typeof HOST_KINDS)[number]

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** The part that all hosts have of the endpoint. */
type MountedMcp = Pick<McpConnector, 'close' | 'openStreams'>

/** The endpoint over a real broker and store, on a port of its own. */
export interface McpHost extends AsyncDisposable {
  readonly url: string
  readonly port: number
  readonly broker: Broker
  readonly user: BrokerHandle
  readonly system: BrokerHandle
  readonly connector: MountedMcp
  /** Every finished request. */
  readonly requests: McpRequestEvent[]
  readonly failures: unknown[]
  /** Resolves with the first finished request that fits, one that was before included. */
  finished(fits: (event: McpRequestEvent) => boolean): Promise<McpRequestEvent>
  post(body: unknown, headers?: Record<string, string>): Promise<Answer>
  call(tool: string, args: object, headers?: Record<string, string>): Promise<Answer>
}

/** A host that is gone when the test is over. */
export async function startHost(options: McpConnectorOptions = {}, kind: HostKind = 'fastify'): Promise<McpHost> {
  const host = await openHost(options, kind)
  onTestFinished(() => host[Symbol.asyncDispose]())
  return host
}

/** A host for several tests, which have to leave it as it was. */
export async function openHost(options: McpConnectorOptions = {}, kind: HostKind = 'fastify'): Promise<McpHost> {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-mcp-'))
  const engine = await openEmbeddedEngine({ path: folder })
  const { broker, system } = createBroker(engine)
  const requests: McpRequestEvent[] = []
  const failures: unknown[] = []
  let told = Promise.withResolvers<void>()
  const mcpOptions: McpConnectorOptions = {
    ...options,
    hooks: {
      requestFinished(event) {
        requests.push(event)
        told.resolve()
        told = Promise.withResolvers()
      },
      failed: (error) => void failures.push(error),
    },
  }
  const closeStore = async (): Promise<void> => {
    await engine.close()
    await rm(folder, { recursive: true, force: true })
  }
  const listening = await HOSTS[kind](broker, mcpOptions).catch(async (error: unknown) => {
    await closeStore()
    throw error
  })
  const { port, connector } = listening
  const url = `http://127.0.0.1:${port}/mcp`
  const post = async (body: unknown, headers: Record<string, string> = {}): Promise<Answer> => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  return {
    url,
    port,
    broker,
    user: broker.as(ANONYMOUS),
    system,
    connector,
    requests,
    failures,
    async finished(fits) {
      for (;;) {
        const event = requests.find(fits)
        if (event) return event
        await told.promise
      }
    },
    post,
    call: (tool, args, headers) => post(toolCall(tool, args), headers),
    async [Symbol.asyncDispose]() {
      await listening.close()
      await closeStore()
    },
  }
}

interface Listening {
  readonly port: number
  readonly connector: MountedMcp
  close(): Promise<void>
}

async function onFastify(broker: Broker, options: McpConnectorOptions): Promise<Listening> {
  const app = fastify({ forceCloseConnections: true })
  const connector = mcpConnector(broker, { ...options, drainMs: 0 })
  await app.register(connector.plugin)
  await app.listen({ port: 0, host: '127.0.0.1' })
  return {
    port: (app.server.address() as AddressInfo).port,
    connector,
    close: () => app.close(),
  }
}

function onNode(broker: Broker, options: McpConnectorOptions): Promise<Listening> {
  const connector = mcpConnector(broker, options)
  return listen(createServer(connector.handler), connector)
}

/** With a parser that reads every JSON body before the endpoint. */
function onExpress(broker: Broker, options: McpConnectorOptions): Promise<Listening> {
  const connector = mcpConnector(broker, options)
  const app = express()
  app.use(express.json({ limit: '20mb' }))
  app.all('/*path', (request, response) => connector.handler(request, response))
  return listen(createServer(app), connector)
}

/** In the style of fetch. */
function onHono(broker: Broker, options: McpConnectorOptions): Promise<Listening> {
  const mcp = createMcpFetchHandler(broker, options)
  const app = new Hono<{ Bindings: HttpBindings }>()
  app.all('*', (context) => mcp(context.req.raw, { clientAddress: context.env.incoming.socket.remoteAddress }))
  const listener = getRequestListener((request, env) => app.fetch(request, env))
  return listen(
    createServer((request, response) => void listener(request, response)),
    mcp,
  )
}

const HOSTS: Record<HostKind, (broker: Broker, options: McpConnectorOptions) => Promise<Listening>> = {
  fastify: onFastify,
  node: onNode,
  express: onExpress,
  hono: onHono,
}

async function listen(server: Server, connector: MountedMcp): Promise<Listening> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    connector,
    async close() {
      await connector.close(0)
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export function toolCall(name: string, args: object, id: unknown = 1): object {
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } }
}

export interface RpcAnswer {
  readonly jsonrpc: string
  readonly id: unknown
  readonly result?: { readonly [key: string]: unknown }
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

export function rpc({ text }: { text: string }): RpcAnswer {
  return JSON.parse(text) as RpcAnswer
}

/** The text block of a tool result. */
export function resultText(answer: { text: string } | RpcAnswer | undefined): string {
  const { result } = answer !== undefined && 'text' in answer ? rpc(answer) : (answer ?? {})
  const [block] = (result?.['content'] ?? []) as { type: string; text: string }[]
  if (block === undefined) throw new Error('no text block')
  return block.text
}

const RECEIVE = { channel: 'q', max_messages: 1, wait_timeout_seconds: 60 }

/** A receive on queue `q` that waits: resolves when the server says so (M6), `answer` when it ends. */
export async function waitingReceive(
  host: McpHost,
  { id = 1, headers = {} }: { id?: unknown; headers?: Record<string, string> } = {},
): Promise<{ readonly answer: Promise<RpcAnswer | undefined> }> {
  const response = await fetch(host.url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'queue_receive', arguments: RECEIVE, _meta: { progressToken: 'p' } },
    }),
  })
  const answer = response.text().then((text) => {
    const messages = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data) as RpcAnswer)
    return messages.find((message) => 'result' in message || 'error' in message)
  })
  return { answer }
}
