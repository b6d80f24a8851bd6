import type { AddressInfo } from 'node:net'

import type { Authorization, Broker, BrokerHandle, Engine } from '@signalbox/broker-core'
import { createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import type { AgentRegistry } from '@signalbox/registry'
import type { AgentTimeouts } from '../src/requests/agent-requests.ts'
import { openRegistry } from '@signalbox/registry'
import { AgentRequests } from '../src/requests/agent-requests.ts'
import Fastify from 'fastify'
import { testFolder } from '@signalbox/testkit/test-folder'
import { onTestFinished } from 'vitest'

import type { FastifyA2aConnector } from '../src/fastify.ts'
import type { A2aConnectorOptions, A2aRequestEvent } from '../src/index.ts'
import { a2aConnector } from '../src/fastify.ts'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface RpcAnswer {
  readonly jsonrpc: string
  readonly id: unknown
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

/** The gateway on a real server, over a real engine and registry. */
export interface GatewayHost {
  readonly base: string
  readonly port: number
  readonly engine: Engine
  readonly broker: Broker
  readonly system: BrokerHandle
  readonly registry: AgentRegistry
  readonly requests: AgentRequests
  readonly connector: FastifyA2aConnector
  /** Every finished request. */
  readonly finished: A2aRequestEvent[]
  readonly failures: unknown[]
  /** Registers an agent at this url. */
  register(agentId: string, url: string): Promise<void>
  deregister(agentId: string): Promise<void>
  /** POSTs to an agent. An object is sent as JSON. */
  post(agentId: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>
  /** Calls a method of an agent, id 1; the parsed answer. */
  call(agentId: string, params?: object, method?: string): Promise<RpcAnswer>
  /** Client connections that are open now. */
  connections(): Promise<number>
  close(): Promise<void>
}

export interface HostOptions extends A2aConnectorOptions {
  readonly timeouts?: AgentTimeouts
  readonly authorization?: Authorization
  /** Wraps the engine. @default the engine itself */
  readonly engine?: (engine: Engine) => Engine
  /** The folder of the store, which another host has used before. @default a new one */
  readonly folder?: string
}

/** Who registers the agents of these tests. */
const OWNER = { clientId: 'owner' }

/** A gateway that is gone when the test is over. */
export async function openGateway(given: HostOptions = {}): Promise<GatewayHost> {
  const { timeouts, authorization, engine: wrapped = (one) => one, folder = testFolder(), ...options } = given
  const engine = wrapped(await openEmbeddedEngine({ path: folder }))
  const { broker, system } = createBroker(engine, authorization === undefined ? {} : { authorization })
  const registry = await openRegistry(system, {})
  const requests = new AgentRequests(system, timeouts ?? { defaultTimeoutMs: 30_000, maxTimeoutMs: 60_000 })
  const finished: A2aRequestEvent[] = []
  const failures: unknown[] = []
  const connector = a2aConnector(
    { broker, system, registry, requests },
    {
      drainMs: 500,
      ...options,
      hooks: {
        requestFinished: (event) => void finished.push(event),
        failed: (error) => void failures.push(error),
        ...options.hooks,
      },
    },
  )
  const app = Fastify({ forceCloseConnections: true })
  await app.register(connector.plugin)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const base = `http://127.0.0.1:${port}`
  let closed: Promise<void> | undefined
  const close = (): Promise<void> =>
    (closed ??= (async () => {
      await app.close()
      await registry.close()
      await engine.close()
    })())
  onTestFinished(close)
  const post: GatewayHost['post'] = async (agentId, body, headers) => {
    const response = await fetch(`${base}/a2a/${agentId}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  return {
    base,
    port,
    engine,
    broker,
    system,
    registry,
    requests,
    connector,
    finished,
    failures,
    async register(agentId, url) {
      await registry.register({ agent_id: agentId, name: agentId, url }, OWNER)
    },
    deregister: (agentId) => registry.deregister(agentId, OWNER),
    post,
    async call(agentId, params = {}, method = 'message/send') {
      const { text } = await post(agentId, { jsonrpc: '2.0', id: 1, method, params })
      return JSON.parse(text) as RpcAnswer
    },
    connections: () =>
      new Promise((resolve, reject) =>
        app.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
    close,
  }
}

/** A `message/send`, as text. */
export function messageSend(id: unknown = 1, params: object = {}): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'message/send', params })
}
