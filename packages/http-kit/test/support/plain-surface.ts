import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TlsOptions } from 'node:tls'

import { onTestFinished } from 'vitest'

import type { Refusal } from '../../src/index.ts'
import type { Admitted, EndpointOptions } from '../../src/internal.ts'
import { anonymousAuthenticator, HttpExchange } from '../../src/index.ts'
import { Endpoint } from '../../src/internal.ts'

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
  /** What the endpoint reported. */
  readonly reported: unknown[]
}

/** Serves the endpoint on a real server. */
export async function servePlain(
  handle: (endpoint: Endpoint) => Admitted<PlainExchange>,
  options: Partial<EndpointOptions> = {},
  tls?: TlsOptions,
): Promise<PlainServer> {
  const reported: unknown[] = []
  const endpoint = new Endpoint({
    authenticator: anonymousAuthenticator,
    trustedOrigins: 'auto',
    failed: (error) => reported.push(error),
    ...options,
  })
  const admitted = handle(endpoint)
  const serve = (request: IncomingMessage, response: ServerResponse): void =>
    endpoint.admit(new PlainExchange(request, response, undefined), admitted)
  const server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { server, port, url: `http://127.0.0.1:${port}/`, reported }
}
