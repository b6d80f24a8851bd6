// One replica of an agent, in a process of its own: it answers each call after a few milliseconds with its own name.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'

const by = process.argv[2] ?? ''

const server = createServer((request, response) => {
  const answer = async (): Promise<void> => {
    const { id } = JSON.parse(await text(request)) as { id: unknown }
    await pause(2 + Math.random() * 8)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { by } }))
  }
  answer().catch(() => response.destroy())
})
await once(server.listen(0, '127.0.0.1'), 'listening')
process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)

// Calls under way end; connections without a call are closed.
process.once('message', () => {
  server.close(() => process.exit())
  server.closeIdleConnections()
})
process.once('disconnect', () => process.exit())
