import { createServer } from 'node:http'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createBroker } from '@signalbox/broker-core'
import { AgentRequests } from '@signalbox/connector-a2a'
import { a2aConnector } from '@signalbox/connector-a2a/fastify'
import { ceConnector } from '@signalbox/connector-cloudevents/fastify'
import { mcpConnector } from '@signalbox/connector-mcp/fastify'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import type { Connector } from '@signalbox/http-kit'
import type { FastifyMount } from '@signalbox/http-kit/fastify'
import { managementApi } from '@signalbox/management-api/fastify'
import { openRegistry } from '@signalbox/registry'
import { registryRoutes } from '@signalbox/registry/fastify'
import Fastify from 'fastify'
import { expect, onTestFinished, test } from 'vitest'

type Shape = Pick<Connector, 'close'> & FastifyMount & AsyncDisposable & { readonly handler?: Connector['handler'] }

/** Every factory of an HTTP surface, and a path where its surface answers. */
const FACTORIES = {
  mcpConnector: '/mcp',
  ceConnector: '/ce/send/event',
  a2aConnector: '/.well-known/agent-card.json',
  registryRoutes: '/agents',
  managementApi: '/metrics',
}

async function connectors(): Promise<Record<keyof typeof FACTORIES, Shape>> {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-connectors-'))
  const engine = await openEmbeddedEngine({ path: folder })
  const { broker, system } = createBroker(engine)
  const registry = await openRegistry(system, {})
  const requests = new AgentRequests(system, { defaultTimeoutMs: 1_000, maxTimeoutMs: 1_000 })
  onTestFinished(async () => {
    await registry.close()
    await engine.close()
    await rm(folder, { recursive: true, force: true })
  })
  return {
    mcpConnector: mcpConnector(broker),
    ceConnector: ceConnector(broker),
    a2aConnector: a2aConnector({ broker, system, registry, requests }),
    registryRoutes: registryRoutes(registry),
    managementApi: managementApi({
      node: async () => ({
        ready: true,
        healthy: true,
        node: 'n',
        version: '1',
        engine: 'embedded',
        uptime_seconds: 0,
      }),
      metrics: { contentType: 'text/plain', text: async () => '' },
      document: { version: '1' },
    }),
  }
}

for (const [name, path] of Object.entries(FACTORIES) as [keyof typeof FACTORIES, string][]) {
  test(`connectors - ${name} gives a plugin that serves its routes, and closes twice`, async () => {
    const connector = (await connectors())[name]
    const app = Fastify({ forceCloseConnections: true })
    await app.register(connector.plugin)
    const base = await app.listen({ host: '127.0.0.1', port: 0 })
    const response = await fetch(base + path)
    await response.body?.cancel()
    expect(response.status).not.toBe(404)
    await connector.close(0)
    await connector.close()
    await connector[Symbol.asyncDispose]()
    await app.close()
  })

  test.skipIf(name === 'managementApi')(`connectors - ${name} gives a handler for a plain server`, async () => {
    await using connector = (await connectors())[name]
    const server = createServer(connector.handler).listen(0, '127.0.0.1')
    await new Promise((listening) => server.once('listening', listening))
    const { port } = server.address() as { port: number }
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    await response.body?.cancel()
    expect(response.status).not.toBe(404)
    await connector.close(0)
    server.closeAllConnections()
    server.close()
  })
}
