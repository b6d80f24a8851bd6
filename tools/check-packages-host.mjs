// Runs in an empty folder outside the workspace (see check-packages.mjs): a host with its own engine, which needs no
// storage package.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { createBroker } from '@signalbox/broker-core'
import { createMcpHandler } from '@signalbox/connector-mcp'

const published = []
const engine = {
  name: 'own',
  limits: { maxMessageBytes: 1_000_000, maxChannels: 10 },
  topics: {
    publish: (channel, message) => {
      published.push({ channel, body: new TextDecoder().decode(message.body) })
      return Promise.resolve()
    },
  },
}

const handler = createMcpHandler(createBroker(engine).broker)
const server = createServer((request, response) => handler(request, response))
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))

const client = new Client({ name: 'packages-check', version: '1.0.0' })
await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${server.address().port}/mcp`)))
const { tools } = await client.listTools()
assert.equal(tools.length, 11)
const result = await client.callTool({ name: 'events_publish', arguments: { channel: 'greetings', body: 'hello' } })
assert.equal(result.isError, false)
assert.deepEqual(published, [{ channel: 'greetings', body: 'hello' }])
await client.close()
await handler.close()
server.close()
console.log(`packages: connector-mcp installed elsewhere lists ${tools.length} tools and publishes an event`)
