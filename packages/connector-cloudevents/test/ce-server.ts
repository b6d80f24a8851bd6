import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'

import { ANONYMOUS, createBroker } from '@signalbox/broker-core'
import type { Authorization, Broker, BrokerHandle } from '@signalbox/broker-core'
import { mcpConnector } from '@signalbox/connector-mcp/fastify'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { abuseProtection, EndpointPolicy, openWebhooks } from '@signalbox/webhooks'
import type { Webhooks } from '@signalbox/webhooks'
import { testFolder } from '@signalbox/testkit/test-folder'
import { onTestFinished } from 'vitest'

import { ceConnector } from '../src/fastify.ts'
import { CE_PUSH_FORMATS } from '../src/index.ts'
import type { CeConnector, CeConnectorOptions } from '../src/index.ts'
import type { Loose } from '@signalbox/testkit/sse-client'
import { SseClient } from '@signalbox/testkit/sse-client'
import { testServer } from '@signalbox/testkit/test-server'

import Fastify from 'fastify'

/** The envelope of an answer, and what came with it. */
export interface CeAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly is_error: boolean
  readonly message: string
  readonly data: Loose
}

export interface CeServer {
  readonly base: string
  readonly broker: Broker
  readonly system: BrokerHandle
  /** The broker for the anonymous caller. */
  readonly user: BrokerHandle
  readonly connector: CeConnector
  /** POSTs to a route below /ce. An object is sent as a structured event. */
  readonly post: (route: string, body?: unknown, headers?: Readonly<Record<string, string>>) => Promise<CeAnswer>
  readonly subscribe: (route: string, headers?: Readonly<Record<string, string>>) => Promise<SseClient>
  readonly connections: () => Promise<number>
  readonly close: () => Promise<void>
}

/** The connector, and /mcp beside it, on a real server over a real embedded engine. Gone when the test is over. */
export async function openCe(
  options: CeConnectorOptions & {
    /** Answers count at every node. */
    readonly relays?: boolean
    /** Opens webhooks for `/ce/subscriptions`, whose endpoints may be on loopback. */
    readonly webhooks?: boolean
    /** The folder of the engine. @default a new one */
    readonly folder?: string
    /** The policy of the broker. @default everything is allowed */
    readonly authorization?: Authorization
  } = {},
): Promise<CeServer> {
  const { folder = testFolder(), authorization, ...settings } = options
  const engine = await openEmbeddedEngine({ path: folder })
  const { broker, system } = createBroker(engine, authorization === undefined ? {} : { authorization })
  const app = Fastify({ forceCloseConnections: true })
  const { relays = false, webhooks: pushes = false, ...own } = settings
  const webhooks = pushes ? await openPush(broker, system) : undefined
  const connector = ceConnector(broker, {
    settleGraceMs: 50,
    ...own,
    ...(relays ? { system } : {}),
    ...(webhooks === undefined ? {} : { push: webhooks }),
  })
  await app.register(connector.plugin)
  await app.register(mcpConnector(broker).plugin)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const base = `http://127.0.0.1:${port}`
  let closed: Promise<void> | undefined
  const clients: SseClient[] = []
  const close = (): Promise<void> =>
    (closed ??= (async () => {
      for (const client of clients) client.close()
      await connector.close(500)
      await webhooks?.close(500)
      await app.close()
      await engine.close()
    })())
  onTestFinished(close)
  return {
    base,
    broker,
    system,
    user: broker.as(ANONYMOUS),
    connector,
    async post(route, body, headers) {
      const structured = body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array)
      const response = await fetch(`${base}/ce/${route}`, {
        method: 'POST',
        headers: { ...(structured ? { 'content-type': 'application/cloudevents+json' } : {}), ...headers },
        ...(body === undefined
          ? {}
          : { body: structured ? JSON.stringify(body) : (body as string | Uint8Array<ArrayBuffer>) }),
      })
      const text = await response.text()
      const envelope = response.headers.get('content-type') === 'application/json' ? JSON.parse(text) : {}
      return { status: response.status, headers: response.headers, text, ...envelope }
    },
    async subscribe(route, headers) {
      const client = await SseClient.open(`${base}/ce/subscribe/${route}`, headers)
      clients.push(client)
      return client
    },
    connections: () =>
      new Promise((resolve, reject) =>
        app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
    close,
  }
}

/** Serves a handler on its own, without a framework; resolves with the address of its routes. */
export async function serveHandler(connector: CeConnector): Promise<string> {
  const server = await testServer(connector.handler)
  onTestFinished(() => connector.close(100))
  const { port } = server
  return `http://127.0.0.1:${port}/ce`
}

/** A valid event, with what the test says of it. */
export function event(more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { specversion: '1.0', id: '1', source: '/test', type: 'com.example.test', ...more }
}

function openPush(broker: Broker, system: BrokerHandle): Promise<Webhooks> {
  return openWebhooks(system, {
    key: randomBytes(32),
    formats: Object.values(CE_PUSH_FORMATS).map(({ name, maxBatch, encode }) => ({
      name,
      maxBatch,
      encode,
      verify: abuseProtection,
    })),
    endpointPolicy: new EndpointPolicy({ allow: ['127.0.0.1'] }),
    origin: 'localhost',
    permits: (owner, type, channel) => broker.as(owner).permits('subscribe', type, channel),
  })
}
