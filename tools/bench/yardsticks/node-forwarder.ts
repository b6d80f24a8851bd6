// A minimal forwarder: node:http on both sides, bytes passed on as they arrive. It forwards calls, and relays streams
// of server-sent events.
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

const [upstream = ''] = process.argv.slice(2)
const { hostname, port } = new URL(upstream)
const agent = new Agent({ keepAlive: true })

const server = createServer((incoming, response) => {
  const { method, url, headers } = incoming
  const outgoing = request({ hostname, port, method, path: url, headers, agent }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    // The head of a stream must not wait for its first event; the head of an answer is sent with it.
    if (answer.headers['content-length'] === undefined) response.flushHeaders()
    answer.pipe(response)
  })
  outgoing.on('error', () => response.destroy())
  response.on('close', () => outgoing.destroy())
  incoming.pipe(outgoing)
})
// Keeps connections open while the other alternatives run.
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => {
  const { port: own } = server.address() as AddressInfo
  process.stdout.write(`listening on http://127.0.0.1:${own}\n`)
})
process.once('SIGTERM', () => process.exit(0))
