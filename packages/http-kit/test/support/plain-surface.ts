import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TlsOptions } from 'node:tls'

import { onTestFinished } from 'vitest'

import type { Call, Refusal, Route, SurfaceOptions } from '../../src/index.ts'
import { anonymousAuthenticator, HttpExchange, Surface } from '../../src/index.ts'
import { wholeBody } from '../../src/internal.ts'

/** A surface whose protocol is a line of text. */
export class PlainExchange extends HttpExchange {
  answer(text: string): void {
    if (this.begin()) this.send(200, {}, text)
  }

  override refuse({ limit, message, reason, retryAfterSeconds, status }: Refusal): void {
    if (!this.begin()) return
    const headers = retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }
    this.sendRefusal(status, headers, `${reason}${limit === undefined ? '' : ` ${limit}`}: ${message}`)
  }

  override crash(): void {
    if (this.begin()) this.sendRefusal(500, {}, 'internal error')
  }
}

export interface PlainServer {
  readonly server: Server
  readonly port: number
  readonly url: string
  readonly surface: Surface
  /** What the surface reported. */
  readonly reported: unknown[]
}

type Run = (exchange: PlainExchange, call: Call<PlainExchange>, body: Buffer) => void | Promise<unknown>

/** A route that reads no body. */
export function route(run: Run): Route<PlainExchange, Buffer> {
  return { run: (call, body = Buffer.alloc(0)) => run(call.exchange, call, body) }
}

/** A route that reads a body of at most `limit` bytes. */
export function bodyRoute(limit: number, run: Run): Route<PlainExchange, Buffer> {
  return { ...route(run), accept: () => limit, read: wholeBody }
}

/** Serves a route on a real server. */
export async function servePlain(
  served: Route<PlainExchange, Buffer>,
  options: Partial<SurfaceOptions> = {},
  tls?: TlsOptions,
): Promise<PlainServer> {
  const reported: unknown[] = []
  const surface = new Surface({
    authenticator: anonymousAuthenticator,
    trustedOrigins: 'auto',
    hooks: { failed: (error) => reported.push(error) },
    ...options,
  })
  const serve = (request: IncomingMessage, response: ServerResponse): void =>
    surface.serve(new PlainExchange(request, response, undefined), served)
  const server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { server, port, url: `http://127.0.0.1:${port}/`, surface, reported }
}
