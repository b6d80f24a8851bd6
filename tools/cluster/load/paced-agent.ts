// An agent in a separate process: it answers calls at once, and streams the requested number of events at a steady
// pace.
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** The request in the text of a message. */
export interface Order {
  readonly events: number
  readonly everyMs: number
}

interface Body {
  readonly id?: unknown
  readonly method: string
  readonly params: { readonly message?: { readonly parts: readonly { readonly text: string }[] } }
}

async function stream(response: ServerResponse, { events, everyMs }: Order): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  for (let n = 0; n < events && !response.destroyed; n++) {
    // The time of sending, so that an event of an older stream shows that the path works again.
    const at = performance.timeOrigin + performance.now()
    response.write(`event: task.artifact\ndata: {"type":"artifact","payload":{"n":${n},"at":${at}}}\n\n`)
    await pause(everyMs)
  }
  response.end(`event: task.done\ndata: {"type":"done","payload":{"events":${events}}}\n\n`)
}

const server = createServer((request, response) => {
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => (text += chunk))
  request.on('error', () => {})
  response.on('error', () => {})
  request.on('end', () => {
    const { id, method, params } = JSON.parse(text) as Body
    const said = params.message?.parts[0]?.text ?? ''
    if (method === 'message/stream') void stream(response, JSON.parse(said) as Order)
    else if (id === undefined) response.writeHead(204).end()
    else {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { echo: said } }))
    }
  })
})

server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`listening on http://127.0.0.1:${port}\n`)
})
process.once('SIGTERM', () => process.exit(0))
