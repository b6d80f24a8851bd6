// Messaging tools for MCP clients at /mcp, inside a server of your own. PORT and STORE_PATH choose where.
import { ANONYMOUS, createBroker, encodeText } from '@signalbox/broker-core'
import { mcpConnector } from '@signalbox/connector-mcp'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { fastify } from 'fastify'

const { PORT = '3000', STORE_PATH = './data' } = process.env
const engine = await openEmbeddedEngine({ path: STORE_PATH })
const { broker } = createBroker(engine)

// The host speaks to the broker directly: here it answers the queries that agents send to the channel "clock".
await broker.as(ANONYMOUS).queries.subscribe('clock', {}, () => ({ body: encodeText(new Date().toISOString()) }))

// Clients keep spare connections open; without this they would hold up the end for half a minute.
const app = fastify({ forceCloseConnections: true })
app.get('/', () => ({ hello: 'this route is mine, the tools are at /mcp' }))
await app.register(mcpConnector(broker).plugin)
app.addHook('onClose', () => engine.close())

console.log(`listening on ${await app.listen({ host: '127.0.0.1', port: Number(PORT) })}`)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void app.close())
