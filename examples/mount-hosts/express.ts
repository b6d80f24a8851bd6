// Messaging tools at /mcp of an Express app, after its parser of bodies. PORT is its port, STORE_PATH the folder of the
// store.
import { createBroker } from '@signalbox/broker-core'
import { mcpConnector } from '@signalbox/connector-mcp'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import express from 'express'

const { PORT = '3000', STORE_PATH = './data' } = process.env
const engine = await openEmbeddedEngine({ path: STORE_PATH })
const connector = mcpConnector(createBroker(engine).broker)

const app = express()
// The limit of the parser applies before that of the connector.
app.use(express.json({ limit: '10mb' }))
app.all('/mcp', (request, response) => connector.handler(request, response))

const server = app.listen(Number(PORT), '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object') console.log(`listening on http://127.0.0.1:${address?.port}`)
})

async function close(): Promise<void> {
  await connector.close()
  server.closeAllConnections()
  server.close()
  await engine.close()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void close())
