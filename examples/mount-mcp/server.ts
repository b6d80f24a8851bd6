// Messaging tools for MCP clients at /mcp, inside your own server. PORT is its port, STORE_PATH the
// folder of the store.
import { ANONYMOUS, createBroker, encodeText } from '@signalbox/broker-core'
import { mcpConnector } from '@signalbox/connector-mcp/fastify'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { fastify } from 'fastify'

const { PORT = '3000', STORE_PATH = './data' } = process.env
const engine = await openEmbeddedEngine({ path: STORE_PATH })
const { broker } = createBroker(engine)

// The host calls the broker directly: here it answers queries on the channel "clock".
await broker.as(ANONYMOUS).queries.subscribe('clock', {}, () => ({ body: encodeText(new Date().toISOString()) }))

// Closes clients' idle connections at once; otherwise they delay the shutdown for half a minute.
const app = fastify({ forceCloseConnections: true })
app.get('/', () => ({ hello: 'this route is mine, the tools are at /mcp' }))
await app.register(mcpConnector(broker).plugin)
app.addHook('onClose', () => engine.close())

console.log(`listening on ${await app.listen({ host: '127.0.0.1', port: Number(PORT) })}`)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void app.close())
