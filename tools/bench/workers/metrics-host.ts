// An MCP host of the benchmark, once with the server's metrics and once without: the server itself cannot disable them.
// Arguments: the entries of the checkout's packages, and `on` or `off`.
import type * as Core from '@signalbox/broker-core'
import type * as Mcp from '@signalbox/connector-mcp/fastify'
import type * as Embedded from '@signalbox/engine-embedded'
import fastify from 'fastify'

import { fastifyEntry, pluginOf } from './plugin-of.ts'

/** The part of the server's metrics that the benchmark needs. */
interface MetricsModule {
  readonly Metrics: new () => {
    readonly observer: Core.BrokerObserver
    requestsOf(connector: string): (outcome: string, seconds: number) => void
  }
}

const [coreEntry = '', engineEntry = '', mcpEntry = '', metricsEntry = '', storePath = '', mode] = process.argv.slice(2)
const { createBroker } = (await import(coreEntry)) as typeof Core
const { openEmbeddedEngine } = (await import(engineEntry)) as typeof Embedded
const { mcpConnector } = (await import(fastifyEntry(mcpEntry))) as typeof Mcp
const { Metrics } = (await import(metricsEntry)) as MetricsModule

const engine = await openEmbeddedEngine({ path: storePath })
const metrics = mode === 'on' ? new Metrics() : undefined
const { broker } = createBroker(engine, metrics === undefined ? {} : { observers: [metrics.observer] })
const observe = metrics?.requestsOf('mcp')
const app = fastify()
await app.register(
  pluginOf(
    mcpConnector(broker, {
      // The server sets this too.
      runHostHooks: false,
      ...(observe === undefined
        ? {}
        : { hooks: { requestFinished: ({ outcome, seconds }) => observe(outcome, seconds) } }),
    }),
  ),
)
process.stdout.write(`listening on ${await app.listen({ host: '127.0.0.1', port: 0 })}\n`)
process.once('SIGTERM', () => {
  void app
    .close()
    .then(() => engine.close())
    .then(() => process.exit(0))
})
