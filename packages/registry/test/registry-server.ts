import type { AddressInfo } from 'node:net'

import Fastify from 'fastify'
import { onTestFinished } from 'vitest'

import type { AgentRegistry, RegistryOptions, RegistryRouteOptions, RegistryRoutes } from '../src/index.ts'
import { registryRoutes } from '../src/fastify.ts'
import type { Faults } from './faults.ts'
import { openBench } from './registry-bench.ts'

/** JSON of any shape: tests look into what they expect, and fail where it is not there. */
// oxlint-disable-next-line typescript/no-explicit-any -- see above
export type Loose = any

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Undefined where it is not JSON. */
  readonly body: Loose
}

export interface RegistryServer {
  readonly base: string
  readonly registry: AgentRegistry
  readonly routes: RegistryRoutes
  /** `POST /agents/register` with an object as JSON, or a string as it is. */
  readonly call: (
    line: `${string} ${string}`,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Answer>
}

/** The routes on a real server over a real embedded engine. Gone when the test is over. */
export async function openServer(
  options: RegistryRouteOptions = {},
  registryOptions: RegistryOptions = {},
  faults?: Faults,
): Promise<RegistryServer> {
  const bench = await openBench()
  const registry = await bench.node(registryOptions, faults)
  const app = Fastify({ forceCloseConnections: true })
  const routes = registryRoutes(registry, options)
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('x-host', 'kept')
  })
  await app.register(routes.plugin)
  await app.listen({ port: 0, host: '127.0.0.1' })
  onTestFinished(() => app.close())
  const base = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`
  return {
    base,
    registry,
    routes,
    async call(line, body, headers = {}) {
      const [method = '', path = ''] = line.split(' ', 2)
      const json = body !== undefined && typeof body !== 'string'
      const response = await fetch(base + path, {
        method,
        headers: { ...(method === 'POST' ? { 'content-type': 'application/json' } : {}), ...headers },
        ...(body === undefined ? {} : { body: json ? JSON.stringify(body) : body }),
      })
      const text = await response.text()
      const isJson = response.headers.get('content-type') === 'application/json'
      return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
    },
  }
}
