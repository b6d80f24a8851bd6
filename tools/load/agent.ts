// An agent in a separate process. It answers calls at once with their text. A stream gets the ordered events at a steady
// pace, or as fast as its reader takes them; any other text opens a stream that stays open. The agent keeps a record of
// the streams whose cancellation it was notified of.
import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

import { answerCalls } from '@signalbox/testkit/calls'
import { serveHttpAlone } from '@signalbox/testkit/loopback'

/** The order in the text of a message to stream. */
export interface Order {
  readonly events: number
  /** The length of each event. @default 0 */
  readonly bytes?: number
  /** The time between two events, in milliseconds. @default the reader's speed */
  readonly everyMs?: number
}

interface Body {
  readonly id?: unknown
  readonly method: string
  readonly params: {
    readonly stream_id?: string
    readonly message?: { readonly parts: readonly { readonly text: string }[] }
  }
}

const open = new Set<ServerResponse>()
const cancelled: string[] = []
let pushedBytes = 0

await serveHttpAlone((request, response) => {
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => (text += chunk))
  request.on('error', () => {})
  response.on('error', () => {})
  request.on('end', () => {
    const { id, method, params } = JSON.parse(text) as Body
    const said = params.message?.parts[0]?.text ?? ''
    if (method === 'message/stream') startStream(response, said)
    else if (method === 'message/send') {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { echo: said } }))
    } else {
      if (method === 'stream_cancel') cancelled.push(String(params.stream_id))
      response.writeHead(204).end()
    }
  })
})

function startStream(response: ServerResponse, said: string): void {
  open.add(response)
  response.once('close', () => open.delete(response))
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  if (said.startsWith('{')) void push(response, JSON.parse(said) as Order)
}

async function push(response: ServerResponse, { events, bytes = 0, everyMs }: Order): Promise<void> {
  const fill = 'x'.repeat(bytes)
  for (let n = 0; n < events && !response.destroyed; n++) {
    // The time of sending, so that an event of an older stream shows that the path works again.
    const at = performance.timeOrigin + performance.now()
    const text = `event: task.artifact\ndata: {"type":"artifact","payload":{"n":${n},"at":${at},"fill":"${fill}"}}\n\n`
    pushedBytes += text.length
    const flows = response.write(text)
    if (everyMs !== undefined) await pause(everyMs)
    else if (!flows) await drained(response)
  }
  response.end(`event: task.done\ndata: {"type":"done","payload":{"events":${events}}}\n\n`)
}

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

answerCalls({
  openStreams: () => open.size,
  cancelled: () => cancelled,
  pushedBytes: () => pushedBytes,
})
