import { once } from 'node:events'
import type { RequestListener, ServerOptions } from 'node:http'
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo, Server, Socket } from 'node:net'
import { createServer } from 'node:net'

/** A server on a free port of 127.0.0.1, which ends with its connections. */
export interface LoopbackServer extends AsyncDisposable {
  /** `http://127.0.0.1:port` */
  readonly url: string
  readonly port: number
}

export function serveHttp(listener: RequestListener, options: ServerOptions = {}): Promise<LoopbackServer> {
  return listening(createHttpServer(options, listener))
}

/** Serves until the process gets SIGTERM, and prints the address for the process that started it. */
export async function serveHttpAlone(listener: RequestListener): Promise<void> {
  // Keeps idle connections open: a client may pause between two parts of a run.
  const { url } = await serveHttp(listener, { keepAliveTimeout: 600_000 })
  process.stdout.write(`listening on ${url}\n`)
  process.once('SIGTERM', () => process.exit(0))
}

/** Serves bare connections. */
export function serveSockets(listener: (socket: Socket) => void): Promise<LoopbackServer> {
  return listening(createServer(listener))
}

async function listening(server: Server): Promise<LoopbackServer> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** The server answered, but not with a success. */
export class HttpError extends Error {
  override readonly name = 'HttpError'
  readonly status: number
  readonly text: string

  constructor(url: string, status: number, text: string) {
    super(`${url} answered ${status}: ${text.slice(0, 500)}`)
    this.status = status
    this.text = text
  }
}

interface JsonRequest {
  /** Sent with POST; without a body the request is a GET. */
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  /** The time-out of the answer, in milliseconds. @default 30,000 */
  readonly timeoutMs?: number
}

/**
 * Sends JSON on a new connection, and resolves with the JSON of the answer; `undefined` for an empty one.
 * @throws HttpError unless the answer is a success
 */
export async function askJson(url: string, { body, headers, timeoutMs = 30_000 }: JsonRequest = {}): Promise<unknown> {
  const response = await fetch(url, {
    headers: { connection: 'close', ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    signal: AbortSignal.timeout(timeoutMs),
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new HttpError(url, response.status, text)
  return text === '' ? undefined : JSON.parse(text)
}
