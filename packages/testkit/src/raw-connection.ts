import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:net'

import { onTestFinished } from 'vitest'

interface RawAnswer {
  readonly status: number
  readonly head: string
  readonly text: string
}

/** A TCP connection for tests beyond an HTTP client: half requests, resets, pipelining. It closes with the running test. */
export class RawConnection {
  readonly socket: Socket
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>
  /** Bytes that were received and not taken yet, with space for more: a copy of all for each piece made large answers slow. */
  #bytes = Buffer.alloc(0)
  #length = 0

  /** Connects to a URL, or to a port of this machine. Writes wait for the connection. */
  constructor(target: string | number, localAddress?: string) {
    const { hostname, port } = new URL(typeof target === 'number' ? `http://127.0.0.1:${target}` : target)
    this.socket = connect({ port: Number(port), host: hostname, ...(localAddress && { localAddress }) })
    this.socket.on('error', () => {})
    this.socket.on('data', (data: Buffer) => this.#add(data))
    this.closed = new Promise((resolve) => this.socket.once('close', () => resolve()))
    onTestFinished(() => void this.socket.destroy())
  }

  /** Resolves when the connection is open. */
  static async open(target: string | number): Promise<RawConnection> {
    const connection = new RawConnection(target)
    await once(connection.socket, 'connect')
    return connection
  }

  /** The text that was received and not taken yet. */
  get received(): string {
    return this.#received.toString()
  }

  get #received(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #add(data: Buffer): void {
    const length = this.#length + data.length
    if (length > this.#bytes.length) {
      const bytes = Buffer.alloc(2 * length)
      this.#received.copy(bytes)
      this.#bytes = bytes
    }
    data.copy(this.#bytes, this.#length)
    this.#length = length
  }

  /** Resolves when the system has taken the bytes. */
  async write(bytes: string | Uint8Array): Promise<void> {
    await new Promise<void>((resolve) => this.socket.write(bytes, () => resolve()))
  }

  /** Writes a `POST` of JSON. A string is JSON text. */
  post(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const lines = Object.entries({
      Host: 'localhost',
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(text)),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}\r\n`)
    this.socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`)
  }

  /** Takes the next answer, which needs a `Content-Length`. */
  async answer(): Promise<RawAnswer> {
    const head = await this.until('\r\n\r\n')
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1])
    while (this.#received.length < length) await this.#more()
    return { status: Number(head.slice(9, 12)), head, text: this.#take(length) }
  }

  /** Takes everything up to this text and the text itself, when it has arrived. Rejects if the connection closes before. */
  async until(text: string): Promise<string> {
    const length = Buffer.byteLength(text)
    for (let seen = 0; ;) {
      const at = this.#received.indexOf(text, seen)
      if (at >= 0) return this.#take(at + length)
      seen = Math.max(0, this.#length - length)
      await this.#more()
    }
  }

  /** Resets the connection, as the kernel of a killed client does. */
  kill(): void {
    this.socket.resetAndDestroy()
  }

  #take(bytes: number): string {
    const taken = this.#received.subarray(0, bytes).toString()
    this.#bytes = this.#bytes.subarray(bytes)
    this.#length -= bytes
    return taken
  }

  async #more(): Promise<void> {
    if (this.socket.closed) throw new Error(`the connection is closed; received: ${this.received.slice(0, 500)}`)
    await Promise.race([once(this.socket, 'data'), this.closed])
  }
}
