import type { Socket } from 'node:net'
import { setTimeout as after } from 'node:timers/promises'

import type { Pieces } from '../grammar/pieces.ts'
import { textOf } from '../grammar/pieces.ts'

/** An agent's answer, byte for byte. */
export interface HostileReply {
  readonly status: string
  readonly headers: readonly string[]
  /** The way in which the answer marks the end of the body, correctly or not. */
  readonly framing: 'length' | 'longer' | 'shorter' | 'chunked' | 'broken-chunks' | 'close' | 'none'
  readonly body: Pieces
  /** The delay between the parts of the body, in milliseconds. */
  readonly pauses: readonly number[]
  readonly end: 'finish' | 'reset' | 'hang'
}

/** The text of a request that selects one of the prepared replies. */
const REPLY_KEY = /reply-key-(\d+)/

const DEFAULT: HostileReply = {
  status: '200 OK',
  headers: ['Content-Type: application/json'],
  framing: 'length',
  body: ['{"jsonrpc":"2.0","id":1,"result":{"kind":"message"}}'],
  pauses: [],
  end: 'finish',
}

/** An agent on sockets that answers as the input specifies. */
export class HostileAgent {
  readonly #replies = new Map<string, HostileReply>()

  /** Prepares replies by key, in place of the previous ones. */
  prepare(replies: ReadonlyMap<string, HostileReply>): void {
    this.#replies.clear()
    for (const [key, reply] of replies) this.#replies.set(key, reply)
  }

  /** One request on each connection; the key is in its head or in the first part of its body. */
  serve(socket: Socket): void {
    socket.on('error', () => {})
    let seen = ''
    let answered = false
    socket.on('data', (chunk) => {
      if (answered) return
      seen += chunk.toString('latin1')
      const headEnd = seen.indexOf('\r\n\r\n')
      if (headEnd === -1) return
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(seen.slice(0, headEnd))?.[1] ?? 0)
      if (seen.length < headEnd + 4 + length) return
      answered = true
      const reply = this.#replies.get(REPLY_KEY.exec(seen)?.[1] ?? '') ?? DEFAULT
      void answer(socket, reply).catch(() => socket.destroy())
    })
  }
}

async function answer(socket: Socket, { status, headers, framing, body, pauses, end }: HostileReply): Promise<void> {
  const bytes = Buffer.from(textOf(body))
  const parts = split(bytes, pauses.length)
  socket.write(`HTTP/1.1 ${status}\r\n${[...headers, ...framingHeaders(framing, bytes.length)].join('\r\n')}\r\n\r\n`)
  for (const [i, part] of parts.entries()) {
    if (i > 0) await after(pauses[i - 1])
    if (socket.destroyed) return
    if (framing === 'chunked') socket.write(Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, CRLF]))
    else if (framing === 'broken-chunks') socket.write(Buffer.concat([Buffer.from('zz\r\n'), part]))
    else socket.write(part)
  }
  if (framing === 'chunked') socket.write('0\r\n\r\n')
  if (end === 'finish') socket.end()
  else if (end === 'reset') socket.resetAndDestroy()
}

const CRLF = Buffer.from('\r\n')

/** Returns the parts without empty ones: an empty chunk would end the body. */
function split(bytes: Buffer, cuts: number): readonly Buffer[] {
  const size = Math.max(1, Math.ceil(bytes.length / (cuts + 1)))
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
}

function framingHeaders(framing: HostileReply['framing'], length: number): readonly string[] {
  switch (framing) {
    case 'length':
      return [`Content-Length: ${length}`]
    case 'longer':
      return [`Content-Length: ${length + 10}`]
    case 'shorter':
      return [`Content-Length: ${Math.max(0, length - 3)}`]
    case 'chunked':
    case 'broken-chunks':
      return ['Transfer-Encoding: chunked']
    default:
      return []
  }
}
