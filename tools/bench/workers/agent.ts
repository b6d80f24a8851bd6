// An agent in a separate process, for the rows about agents: it answers calls with a prepared response, keeps streams
// open, and sends events on all of them on request.
import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { answerCalls } from '../../harness/calls.ts'

const RESPONSE = Buffer.from(
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    result: { kind: 'message', role: 'agent', messageId: 'm', parts: [{ kind: 'text', text: 'a'.repeat(256) }] },
  }),
)
const JSON_HEAD = { 'Content-Type': 'application/json', 'Content-Length': RESPONSE.byteLength }
const streams = new Set<ServerResponse>()

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('latin1')
  request.on('data', (chunk: string) => (body += chunk))
  request.on('end', () => {
    if (!body.includes('"message/stream"')) {
      response.writeHead(200, JSON_HEAD)
      response.end(RESPONSE)
      return
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.flushHeaders()
    streams.add(response)
    response.once('close', () => streams.delete(response))
  })
})

export interface Emission {
  readonly events: number
  readonly perSecond: number
  readonly bytes: number
}

answerCalls({
  openStreams: () => streams.size,
  /** Sends this many events on each stream, at an even rate; resolves after the last one. */
  emit: async ({ events, perSecond, bytes }: Emission) => {
    const status = { kind: 'status-update', taskId: 't', contextId: 'c', status: { state: 'working' }, final: false }
    const result = { ...status, metadata: { text: 'a'.repeat(Math.max(0, bytes - 200)) } }
    const event = Buffer.from(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`)
    const begin = performance.now()
    for (let sent = 0; sent < events;) {
      const due = Math.min(events, Math.ceil(((performance.now() - begin) / 1000) * perSecond))
      for (; sent < due; sent++) for (const stream of streams) stream.write(event)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  },
})
// Keeps connections open while the other alternatives run.
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`listening on http://127.0.0.1:${port}\n`)
})
process.once('SIGTERM', () => process.exit(0))
