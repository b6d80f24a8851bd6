import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:net'

import { onTestFinished } from 'vitest'

export interface RawAnswer {
  readonly status: number
  readonly head: string
  readonly text: string
}

/** One TCP connection, for what an HTTP client would hide: resets, half answers, two requests in a row. */
export class RawConnection {
  readonly socket: Socket
  #received = Buffer.alloc(0)

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('data', (data) => {
      this.#received = Buffer.concat([this.#received, data])
    })
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    onTestFinished(() => void socket.destroy())
    return new RawConnection(socket)
  }

  post(body: unknown, headers: Record<string, string> = {}): void {
    const text = JSON.stringify(body)
    const lines = Object.entries({
      Host: 'localhost',
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(text)),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}\r\n`)
    this.socket.write(`POST /mcp HTTP/1.1\r\n${lines.join('')}\r\n${text}`)
  }

  /** The next answer, which has to carry a Content-Length. */
  async answer(): Promise<RawAnswer> {
    const head = await this.until('\r\n\r\n')
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1])
    while (this.#received.length < length) await this.#more()
    const text = this.#received.subarray(0, length).toString()
    this.#received = this.#received.subarray(length)
    return { status: Number(head.slice(9, 12)), head, text }
  }

  /** Everything up to this text, which is taken off. */
  async until(text: string): Promise<string> {
    for (;;) {
      const at = this.#received.indexOf(text)
      if (at >= 0) {
        const taken = this.#received.subarray(0, at + text.length).toString()
        this.#received = this.#received.subarray(at + text.length)
        return taken
      }
      await this.#more()
    }
  }

  async #more(): Promise<void> {
    if (this.socket.closed)
      throw new Error(`the connection is closed; received: ${this.#received.toString().slice(0, 500)}`)
    await Promise.race([once(this.socket, 'data'), once(this.socket, 'close')])
  }

  /** As the kernel of a killed client does: a reset, not an orderly end. */
  kill(): void {
    this.socket.resetAndDestroy()
  }
}
