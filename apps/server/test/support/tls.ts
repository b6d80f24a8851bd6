import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import type { AgentOptions } from 'node:https'
import { Agent, createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

/** A file of the test certificates. */
export function certificate(name: string): string {
  return join(import.meta.dirname, '..', 'certificates', name)
}

export function pem(name: string): string {
  return readFileSync(certificate(name), 'utf8')
}

/** An agent over TLS at 127.0.0.1; resolves with its port. */
export async function startTlsAgent(when: (answer: () => void) => void = (answer) => answer()): Promise<number> {
  const server = createServer({ key: pem('server.key'), cert: pem('server.crt') }, (_request, response) => {
    when(() => response.end('{"jsonrpc":"2.0","id":1,"result":"over TLS"}'))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A client that trusts the test authority, with connections of its own. */
export function tlsClient(options: AgentOptions = {}): Agent {
  const agent = new Agent({ ca: pem('authority.crt'), keepAlive: true, ...options })
  onTestFinished(() => agent.destroy())
  return agent
}

export interface TlsAnswer {
  readonly status: number
  readonly text: string
  readonly headers: IncomingHttpHeaders
}

/** One request over TLS; rejects when there is no answer. */
export function fetchTls(
  url: string,
  agent: Agent,
  {
    method = 'GET',
    headers = {},
    body = '',
  }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<TlsAnswer> {
  return new Promise((resolve, reject) => {
    const call = request(url, { agent, method, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }))
      response.on('error', reject)
    })
    call.on('error', reject)
    call.end(body)
  })
}
