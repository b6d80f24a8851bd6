import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import type { AgentOptions } from 'node:https'
import { Agent, request } from 'node:https'
import { join } from 'node:path'

import { onTestFinished } from 'vitest'

/** A file of the test certificates. */
export function certificate(name: string): string {
  return join(import.meta.dirname, '..', 'certificates', name)
}

export function pem(name: string): string {
  return readFileSync(certificate(name), 'utf8')
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
