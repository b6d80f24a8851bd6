import { join } from 'node:path'

import { testFolder } from '@signalbox/testkit/test-folder'
import { answer, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { expect, test } from 'vitest'

import type { RunningServer } from '../src/server.ts'
import type { Answer } from './support/agent.ts'
import { postJson, register, startAgent, withResult } from './support/agent.ts'
import { serve } from './support/server.ts'

interface Edge {
  readonly from: string
  readonly to: string
  readonly messages: number
  readonly errors: number
  readonly latency_seconds: number | null
}

async function edgesOf({ api }: RunningServer): Promise<readonly Edge[]> {
  const response = await fetch(`${api.url}/api/map`)
  return ((await response.json()) as { readonly data: { readonly edges: readonly Edge[] } }).data.edges
}

/** Returns the messages and errors by the ends of an edge, of which the id of a subscription is left out. */
async function countsOf(server: RunningServer): Promise<Readonly<Record<string, readonly [number, number]>>> {
  return Object.fromEntries(
    (await edgesOf(server)).map(({ from, to, messages, errors }) => [
      `${from} > ${to.replace(/^webhooks\/.*/, 'webhook')}`,
      [messages, errors],
    ]),
  )
}

/** Answers with a result, or for a message with the text `fail` with an error of its own. */
const mayFail: Answer = (asked, response) => {
  if (!asked.body.includes('"fail"')) return withResult('done')(asked, response)
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_001, message: 'cannot' } }))
}

function callTool(server: RunningServer, name: string, args: object): Promise<Response> {
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
  return postJson(`${server.http.url}/mcp`, body, { accept: 'application/json, text/event-stream' })
}

function messageOf(text: string) {
  return { kind: 'message', role: 'user', messageId: text, parts: [{ kind: 'text', text }] }
}

test('map - calls of an agent through the gateway, by tools and by operators are one edge', async () => {
  const server = await serve()
  const agent = await startAgent(mayFail)
  await register(server.http.url, { agent_id: 'cook', name: 'Cook', url: agent.url })
  for (const text of ['boil', 'fail']) {
    const params = { message: messageOf(text) }
    const call = { jsonrpc: '2.0', id: 1, method: 'message/send', params }
    await (await postJson(`${server.http.url}/a2a/cook`, call)).text()
    await (await callTool(server, 'agent_send', { agent_id: 'cook', message: text })).text()
    const action = { agent_id: 'cook', message: text }
    await (await postJson(`${server.api.url}/api/actions/call_agent`, action)).text()
  }
  // Calls of agents that are not registered are no edge.
  await (await postJson(`${server.http.url}/a2a/nothing`, { jsonrpc: '2.0', id: 1, method: 'message/send' })).text()
  await expect.poll(() => countsOf(server)).toEqual({ 'callers/anonymous > agents/cook': [6, 3] })
  const [edge] = await edgesOf(server)
  expect(edge?.latency_seconds).toBeGreaterThan(0)
})

test('map - deliveries to a webhook are an edge from its channel, and failed attempts are errors', async () => {
  const server = await serve({
    webhooks: { enable: true, keyFile: join(testFolder(), 'webhooks.key'), allow: ['127.0.0.1'] },
  })
  const endpoint = await openReceiver()
  endpoint.reply = (response, received) => answer(endpoint.received.length === 1 ? 500 : 204)(response, received)
  const subscription = { sink: endpoint.url, config: { channel: 'orders' } }
  expect((await postJson(`${server.http.url}/ce/subscriptions`, subscription)).status).toBe(201)
  await (await callTool(server, 'events_store_publish', { channel: 'orders', body: 'x' })).text()
  // The reading of the server for the webhook is no receiver.
  await expect
    .poll(() => countsOf(server))
    .toEqual({ 'callers/anonymous > events_store/orders': [1, 0], 'events_store/orders > webhook': [2, 1] })
})
