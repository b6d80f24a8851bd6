import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'

export interface HttpAnswer {
  readonly status: number
  readonly body: Buffer
}

export interface ConnectionOptions {
  /** The certificate authority of the server; if it is set, the connection uses TLS. */
  readonly ca?: string
  /** The local address of the connection. */
  readonly localAddress?: string
  /** The headers of each request of an MCP client. */
  readonly headers?: Readonly<Record<string, string>>
}

const HEAD_END = Buffer.from('\r\n\r\n')
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i

/**
 * One keep-alive connection that sends prepared bytes and reads answers with a Content-Length. It does the minimum of a
 * client, so that the load generator never limits a measurement. One request at a time.
 */
export class KeepAliveConnection {
  readonly #socket: Socket
  #received: Buffer = Buffer.alloc(0)
  #failure: Error | undefined
  #waiting: { resolve: (answer: HttpAnswer) => void; reject: (error: Error) => void } | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (chunk) => this.#take(chunk))
    socket.on('error', (error) => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('the connection is closed')))
  }

  static open(url: string, { ca, localAddress }: ConnectionOptions = {}): Promise<KeepAliveConnection> {
    const { hostname: host, port } = new URL(url)
    const address = { host, port: Number(port), ...(localAddress === undefined ? {} : { localAddress }) }
    return new Promise((resolve, reject) => {
      const socket = ca === undefined ? connect(address) : connectTls({ ...address, ca })
      socket.once('error', reject)
      socket.once(ca === undefined ? 'connect' : 'secureConnect', () => {
        socket.off('error', reject)
        resolve(new KeepAliveConnection(socket))
      })
    })
  }

  request(bytes: Buffer): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) {
        reject(this.#failure)
        return
      }
      this.#waiting = { resolve, reject }
      this.#socket.write(bytes)
    })
  }

  /** Rejects a waiting request. */
  close(): void {
    this.#socket.destroy()
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    const headEnd = this.#received.indexOf(HEAD_END)
    if (headEnd === -1) return
    const head = this.#received.toString('latin1', 0, headEnd)
    const length = CONTENT_LENGTH.exec(head)?.[1]
    if (length === undefined) {
      this.#fail(new Error(`answer without Content-Length:\n${head}`))
      return
    }
    const end = headEnd + HEAD_END.length + Number(length)
    if (this.#received.length < end) return
    const body = this.#received.subarray(headEnd + HEAD_END.length, end)
    this.#received = this.#received.subarray(end)
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.resolve({ status: Number(head.slice(9, 12)), body })
  }

  #fail(error: Error): void {
    this.#failure ??= error
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.reject(error)
  }
}

/** Returns the bytes of a POST request; the body is JSON unless a header states otherwise. */
export function postBytes(url: string, json: string, headers: Readonly<Record<string, string>> = {}): Buffer {
  const { host, pathname, search } = new URL(url)
  const all = {
    Host: host,
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...headers,
  }
  const lines = [
    `POST ${pathname}${search} HTTP/1.1`,
    ...Object.entries(all).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(json)}`,
  ]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${json}`)
}
