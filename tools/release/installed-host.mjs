// Runs in an empty folder outside the workspace (see installed.ts): a host that mounts connector-mcp over the embedded engine,
// and the official MCP client, which sends a message and prints what it receives.
import { createServer } from 'node:http'

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { createBroker } from '@signalbox/broker-core'
import { mcpConnector } from '@signalbox/connector-mcp'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'

const engine = await openEmbeddedEngine({ path: './data' })
const connector = mcpConnector(createBroker(engine).broker)
const server = createServer(connector.handler)
await new Promise((listening) => server.listen(0, '127.0.0.1', listening))

const client = new Client({ name: 'release-rehearsal', version: '1.0.0' })
await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${server.address().port}/mcp`)))
await client.callTool({ name: 'queue_send', arguments: { channel: 'greetings', body: 'hello' } })
const { structuredContent } = await client.callTool({
  name: 'queue_receive',
  arguments: { channel: 'greetings', max_messages: 1 },
})
await client.close()
await connector.close()
server.close()
await engine.close()
console.log(structuredContent.messages[0].body)
