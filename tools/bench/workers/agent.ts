// An agent in a separate process, for the rows about agents: it answers calls with a prepared response, keeps streams
// open, and sends events on all of them on request.
import { Buffer } from 'node:buffer'
import type { ServerResponse } from 'node:http'

import { answerCalls } from '@signalbox/testkit/calls'
import { serveHttpAlone } from '@signalbox/testkit/loopback'

const TEXT = 'a'.repeat(256)
const RESULTS = {
  '0.3': { kind: 'message', role: 'agent', messageId: 'm', parts: [{ kind: 'text', text: TEXT }] },
  '1.0': { message: { role: 'ROLE_AGENT', messageId: 'm', parts: [{ text: TEXT }] } },
}
const RESPONSES = { '0.3': responseOf(RESULTS['0.3']), '1.0': responseOf(RESULTS['1.0']) }
const streams = { '0.3': new Set<ServerResponse>(), '1.0': new Set<ServerResponse>() }

function responseOf(result: object): Buffer {
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
}

/** Returns a status event of the given size; both versions have the same information in it. */
function eventOf(version: keyof typeof streams, bytes: number): Buffer {
  const ids = { taskId: 't', contextId: 'c' }
  const metadata = { text: 'a'.repeat(Math.max(0, bytes - 200)) }
  const result =
    version === '0.3'
      ? { kind: 'status-update', ...ids, status: { state: 'working' }, final: false, metadata }
      : { statusUpdate: { ...ids, status: { state: 'TASK_STATE_WORKING' }, metadata } }
  return Buffer.from(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`)
}

await serveHttpAlone((request, response) => {
  let body = ''
  request.setEncoding('latin1')
  request.on('data', (chunk: string) => (body += chunk))
  request.on('end', () => {
    const version = /"method":"(SendMessage|SendStreamingMessage)"/.test(body) ? '1.0' : '0.3'
    if (!/"method":"(message\/stream|SendStreamingMessage)"/.test(body)) {
      const bytes = RESPONSES[version]
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': bytes.byteLength })
      response.end(bytes)
      return
    }
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.flushHeaders()
    streams[version].add(response)
    response.once('close', () => streams[version].delete(response))
  })
})

export interface Emission {
  readonly events: number
  readonly perSecond: number
  readonly bytes: number
}

answerCalls({
  openStreams: () => streams['0.3'].size + streams['1.0'].size,
  /** Sends this many events on each stream, at an even rate; resolves after the last one. */
  emit: async ({ events, perSecond, bytes }: Emission) => {
    const old = eventOf('0.3', bytes)
    const native = eventOf('1.0', bytes)
    const begin = performance.now()
    for (let sent = 0; sent < events;) {
      const due = Math.min(events, Math.ceil(((performance.now() - begin) / 1000) * perSecond))
      for (; sent < due; sent++) {
        for (const stream of streams['0.3']) stream.write(old)
        for (const stream of streams['1.0']) stream.write(native)
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  },
})
