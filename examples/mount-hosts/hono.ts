// Messaging tools at /mcp of a Hono app on Node. PORT is its port, STORE_PATH the folder of the store.
import { createServer } from 'node:http'

import type { HttpBindings } from '@hono/node-server'
import { getRequestListener } from '@hono/node-server'
import { createBroker } from '@signalbox/broker-core'
import { createMcpFetchHandler } from '@signalbox/connector-mcp'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { Hono } from 'hono'

const { PORT = '3000', STORE_PATH = './data' } = process.env
const engine = await openEmbeddedEngine({ path: STORE_PATH })
const mcp = createMcpFetchHandler(createBroker(engine).broker)

const app = new Hono<{ Bindings: HttpBindings }>()
// Limits count anonymous callers by their address.
app.all('/mcp', (context) => mcp(context.req.raw, { clientAddress: context.env.incoming.socket.remoteAddress }))

const listener = getRequestListener((request, env) => app.fetch(request, env))
const server = createServer((request, response) => void listener(request, response))
server.listen(Number(PORT), '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object') console.log(`listening on http://127.0.0.1:${address?.port}`)
})

async function close(): Promise<void> {
  await mcp.close()
  server.closeAllConnections()
  server.close()
  await engine.close()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void close())
