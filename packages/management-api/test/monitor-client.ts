import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'

import type { ResponseEnvelope } from '../src/index.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- frames of all kinds
type Frame = any

/** A monitor as an operator's tool has it. */
export class MonitorClient {
  readonly socket: WebSocket
  readonly frames: Frame[] = []
  /** Resolves with the close code. */
  readonly closed: Promise<number>
  #changed: (() => void)[] = []

  constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('message', (data: Buffer) => {
      this.frames.push(JSON.parse(data.toString()))
      for (const changed of this.#changed.splice(0)) changed()
    })
    socket.on('error', () => {})
    this.closed = new Promise((resolve) => socket.once('close', (code) => resolve(code)))
    onTestFinished(() => socket.terminate())
  }

  get messages(): Frame[] {
    return this.frames.filter(({ kind }) => kind === 'message')
  }

  /** Waits for a frame. */
  async until(seen: (frame: Frame) => boolean): Promise<Frame> {
    for (;;) {
      const found = this.frames.find(seen)
      if (found !== undefined) return found
      await new Promise<void>((resolve) => this.#changed.push(resolve))
    }
  }
}

export interface RefusedMonitor {
  readonly status: number
  readonly envelope: ResponseEnvelope
}

/** Opens a monitor, or says how it was refused. */
export async function openMonitor(
  url: string,
  query = '',
  headers: Record<string, string> = {},
  path = '/api/monitor',
): Promise<MonitorClient | RefusedMonitor> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}${query}`, { headers })
  const client = new MonitorClient(socket)
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(client))
    socket.once('unexpected-response', (_request, response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, envelope: JSON.parse(text) as ResponseEnvelope }),
      )
    })
    socket.once('error', reject)
  })
}

/** As {@link openMonitor}, for one that must open; its first frame has come. */
export async function monitor(
  url: string,
  query = '',
  headers: Record<string, string> = {},
  path = '/api/monitor',
): Promise<MonitorClient> {
  const opened = await openMonitor(url, query, headers, path)
  if (!(opened instanceof MonitorClient)) throw new Error(`refused: ${opened.status} ${opened.envelope.error_string}`)
  await opened.until(({ kind }) => kind === 'started')
  return opened
}
