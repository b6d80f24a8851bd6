import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:net'

/** The answers, as Node's HTTP server writes them. */
const KEPT = 'Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n'
const CONSENT = Buffer.from(`HTTP/1.1 200 OK\r\nWebHook-Allowed-Origin: *\r\nContent-Length: 0\r\n${KEPT}`)
const ACCEPTED = Buffer.from(`HTTP/1.1 204 No Content\r\nDate: Mon, 23 Nov 2026 00:00:00 GMT\r\n${KEPT}`)

const HEAD_END = Buffer.from('\r\n\r\n')
const LENGTH = /\r\ncontent-length: (\d+)/i

/** Answers the requests of one connection, one after the other. */
function serve(socket: Socket): void {
  /** The bytes of a head without its end. */
  let head = Buffer.alloc(0)
  /** The bytes of the body that have not arrived, and the answer after them. */
  let left = 0
  let answer = ACCEPTED
  socket.setNoDelay(true)
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk) => {
    let rest = chunk
    while (rest.byteLength > 0) {
      if (left === 0) {
        head = head.byteLength === 0 ? rest : Buffer.concat([head, rest])
        const end = head.indexOf(HEAD_END)
        if (end < 0) return
        const text = head.toString('latin1', 0, end)
        answer = text.startsWith('OPTIONS') ? CONSENT : ACCEPTED
        left = Number(LENGTH.exec(text)?.[1] ?? 0)
        rest = head.subarray(end + HEAD_END.byteLength)
        head = Buffer.alloc(0)
      }
      const part = Math.min(left, rest.byteLength)
      left -= part
      rest = rest.subarray(part)
      if (left === 0) socket.write(answer)
    }
  })
}

/**
 * Opens an endpoint on the load's core that agrees to webhooks and accepts each delivery. Node's HTTP server needs as
 * much CPU for a request as the bare loop for sending it, so it would limit that loop.
 */
export async function openEndpoint(): Promise<AsyncDisposable & { readonly url: string }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    serve(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
