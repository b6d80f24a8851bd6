// An agent in a separate process, for the soak of agents' streams: it sends the requested bytes at the reader's speed,
// or keeps a stream open, and records the streams whose cancellation it was notified of.
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { answerCalls } from '../harness/calls.ts'

/** The request in the text of a message. */
export interface Order {
  readonly events: number
  readonly bytes: number
}

interface Body {
  readonly method: string
  readonly params: {
    readonly stream_id?: string
    readonly message?: { readonly parts: readonly { readonly text: string }[] }
  }
}

const open = new Set<ServerResponse>()
const cancelled: string[] = []
let pushedBytes = 0

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
}

async function push(response: ServerResponse, { events, bytes }: Order): Promise<void> {
  const fill = 'x'.repeat(bytes)
  for (let n = 0; n < events && !response.destroyed; n++) {
    const text = `event: task.artifact\ndata: {"type":"artifact","payload":{"n":${n},"fill":"${fill}"}}\n\n`
    pushedBytes += text.length
    if (!response.write(text)) await drained(response)
  }
  response.end('event: task.done\ndata: {"type":"done","payload":{}}\n\n')
}

const server = createServer((request, response) => {
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => (text += chunk))
  request.on('end', () => {
    const { method, params } = JSON.parse(text) as Body
    if (method === 'stream_cancel') {
      cancelled.push(String(params.stream_id))
      response.writeHead(204).end()
      return
    }
    open.add(response)
    response.once('close', () => open.delete(response))
    response.on('error', () => {})
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    const order = params.message?.parts[0]?.text ?? ''
    if (order.startsWith('{')) void push(response, JSON.parse(order) as Order)
  })
})

answerCalls({
  openStreams: () => open.size,
  cancelled: () => cancelled,
  pushedBytes: () => pushedBytes,
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`listening on http://127.0.0.1:${port}\n`)
})
process.once('SIGTERM', () => process.exit(0))
