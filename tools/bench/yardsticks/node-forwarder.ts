// A minimal forwarder: node:http on both sides, bytes passed on as they arrive. It forwards calls, and relays streams
// of server-sent events.
import { Agent, request } from 'node:http'

import { serveHttpAlone } from '@signalbox/testkit/loopback'

const [upstream = ''] = process.argv.slice(2)
const { hostname, port } = new URL(upstream)
const agent = new Agent({ keepAlive: true })

await serveHttpAlone((incoming, response) => {
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
