import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'

/** What an agent was asked. */
export interface Asked {
  readonly headers: IncomingHttpHeaders
  readonly method: string
  readonly params: Record<string, unknown>
  /** As it arrived. */
  readonly body: string
}

export type Answer = (asked: Asked, response: ServerResponse) => void | Promise<void>

/** An agent on bare node:http; it ends with the test. */
export interface BareAgent {
  readonly url: string
  readonly asked: readonly Asked[]
  /** Callers that went away before their answer. */
  readonly gone: readonly Asked[]
}

/** Starts an agent on a free port. */
export async function startAgent(answer: Answer): Promise<BareAgent> {
  const asked: Asked[] = []
  const gone: Asked[] = []
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request)
    const { method, params = {} } = JSON.parse(body) as { method: string; params?: Record<string, unknown> }
    const one = { headers: request.headers, method, params, body }
    asked.push(one)
    response.once('close', () => {
      if (!response.writableFinished) gone.push(one)
    })
    await answer(one, response)
  }
  const server = createServer((request, response) => void serve(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/rpc`, asked, gone }
}

/** Answers every call with this result. */
export function withResult(result: unknown): Answer {
  return (_asked, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ jsonrpc: '2.0', id: null, result }))
  }
}

/** Never answers. */
export const silent: Answer = () => {}

/** Registers an agent at a server; resolves with the card in the answer. */
export async function register(base: string, card: object): Promise<Record<string, unknown>> {
  const response = await postJson(`${base}/agents/register`, card)
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as Record<string, unknown>
}

export function postJson(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

/** One JSON-RPC request to an agent through the gateway. */
export async function callAgent(base: string, agentId: string, method: string, params: object = {}): Promise<unknown> {
  return (await postJson(`${base}/a2a/${agentId}`, { jsonrpc: '2.0', id: 1, method, params })).json()
}

/** The ids that `GET /agents` lists. */
export async function listed(base: string): Promise<readonly string[]> {
  const cards = (await (await fetch(`${base}/agents`)).json()) as { agent_id: string }[]
  return cards.map(({ agent_id }) => agent_id)
}
