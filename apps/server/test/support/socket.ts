import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A connection by hand, for what fetch would never send. */
export class RawConnection {
  readonly socket: Socket
  received = ''
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>

  constructor(base: string, localAddress?: string) {
    const { hostname, port } = new URL(base)
    this.socket = connect({ port: Number(port), host: hostname, ...(localAddress && { localAddress }) })
    this.socket.setEncoding('utf8').on('data', (text: string) => (this.received += text))
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()))
    this.socket.on('error', () => {})
    onTestFinished(() => void this.socket.destroy())
  }

  /** Resolves when the system has taken the text. */
  async write(text: string): Promise<void> {
    await new Promise<void>((resolve) => this.socket.write(text, () => resolve()))
  }
}

/** The text of a `POST /mcp` that calls a tool. */
export function callText(name: string, args: object): string {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } })
  return `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}
