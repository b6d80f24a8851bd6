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
  readonly localAddress?: string | undefined
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
    const address = { host, port: Number(port), localAddress }
    return new Promise((resolve, reject) => {
      const socket = ca === undefined ? connect(address) : connectTls({ ...address, ca })
      socket.once('error', reject)
      socket.once(ca === undefined ? 'connect' : 'secureConnect', () => {
        socket.off('error', reject)
        resolve(new KeepAliveConnection(socket))
      })
    })
  }

  /** `false` if the connection has failed, or the server has closed it. */
  get isOpen(): boolean {
    return this.#failure === undefined
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

const FAILED_TOOL = Buffer.from('"isError":true')
const FAILED_CALL = Buffer.from('"error":{')
const FAILED_SEND = Buffer.from('"is_error":true')

/** Throws for an answer that is not a success: a benchmark of errors is worthless. */
export function assertSuccess({ status, body }: HttpAnswer): void {
  const failed = [FAILED_TOOL, FAILED_CALL, FAILED_SEND].some((text) => body.includes(text))
  if (failed || status < 200 || status > 299) {
    throw new Error(`the server answered ${status}: ${body.toString().slice(0, 500)}`)
  }
}

export interface LoadResult {
  readonly requests: number
  readonly wallMs: number
}

/**
 * Keep-alive connections that each send a prepared request again as soon as it is answered. An answer that is
 * not a success throws.
 */
export class ClosedLoop {
  readonly #url: string
  #connections: readonly KeepAliveConnection[]
  readonly #request: () => Buffer

  private constructor(url: string, connections: readonly KeepAliveConnection[], request: () => Buffer) {
    this.#url = url
    this.#connections = connections
    this.#request = request
  }

  /** @param request The prepared request, or a function that returns the next one */
  static async open(url: string, request: Buffer | (() => Buffer), connections = 64): Promise<ClosedLoop> {
    const next = typeof request === 'function' ? request : () => request
    const open = Array.from({ length: connections }, () => KeepAliveConnection.open(url))
    return new ClosedLoop(url, await Promise.all(open), next)
  }

  async run(durationMs: number): Promise<LoadResult> {
    // The server closes connections that were idle while other alternatives ran.
    this.#connections = await Promise.all(
      this.#connections.map(async (each) => (each.isOpen ? each : KeepAliveConnection.open(this.#url))),
    )
    const begin = performance.now()
    const end = begin + durationMs
    let requests = 0
    const send = async (connection: KeepAliveConnection) => {
      while (performance.now() < end) {
        assertSuccess(await connection.request(this.#request()))
        requests++
      }
    }
    await Promise.all(this.#connections.map(send))
    return { requests, wallMs: performance.now() - begin }
  }

  close(): void {
    for (const connection of this.#connections) connection.close()
  }
}

/** The connections of one host's session: the requests of each, in their order. */
export type Session = readonly (readonly Buffer[])[]

/** MCP hosts that repeat the same session: they connect, send prepared requests one after another, and close. */
export class HostSessions {
  readonly #url: string
  readonly #session: Session
  readonly #hosts: number

  constructor(url: string, session: Session, hosts = 64) {
    this.#url = url
    this.#session = session
    this.#hosts = hosts
  }

  /** Runs whole sessions until the time has passed. An answer that is not a success throws. */
  async run(durationMs: number): Promise<LoadResult> {
    const begin = performance.now()
    const end = begin + durationMs
    let requests = 0
    const host = async () => {
      while (performance.now() < end) {
        const done = await this.#runSession()
        requests += done
      }
    }
    await Promise.all(Array.from({ length: this.#hosts }, host))
    return { requests, wallMs: performance.now() - begin }
  }

  async #runSession(): Promise<number> {
    let done = 0
    for (const requests of this.#session) {
      const connection = await KeepAliveConnection.open(this.#url)
      for (const request of requests) {
        const { status, body } = await connection.request(request)
        if (status !== 200 || !body.includes('"result":{') || body.includes('"isError":true')) {
          throw new Error(`the server answered ${status}: ${body.toString().slice(0, 500)}`)
        }
        done++
      }
      connection.close()
    }
    return done
  }
}
