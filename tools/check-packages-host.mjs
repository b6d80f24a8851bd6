// Runs in an empty folder outside the workspace (see check-packages.mjs): a host with its own engine, which needs no
// storage package. It serves until its standard input ends, then prints the published events.
import { once } from 'node:events'
import { createServer } from 'node:http'

import { createBroker, SettingsTable } from '@signalbox/broker-core'
import { mcpConnector } from '@signalbox/connector-mcp'

const published = []
const engine = {
  name: 'own',
  limits: { maxMessageBytes: 1_000_000, maxChannels: 10 },
  settings: new SettingsTable(),
  queues: { listen: () => {} },
  events: {
    publish: (channel, message) => {
      published.push({ channel, body: new TextDecoder().decode(message.body) })
      return Promise.resolve()
    },
  },
}

await using connector = mcpConnector(createBroker(engine).broker)
const server = createServer((request, response) => connector.handler(request, response)).listen(0, '127.0.0.1')
await once(server, 'listening')
console.log(server.address().port)
await once(process.stdin.resume(), 'end')
await connector.close()
server.close()
console.log(JSON.stringify(published))
