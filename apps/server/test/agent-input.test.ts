import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import type { BareAgent } from './support/agent.ts'
import { listed, register, startAgent } from './support/agent.ts'
import { PATIENT, serveNode, startNats } from './support/nodes.ts'
import { serve } from './support/server.ts'

const CALL = { name: 'agent_send', arguments: { agent_id: 'clerk', message: 'book a table' } }

/** An agent that asks one question, and then completes its task. */
function startClerk(): Promise<BareAgent> {
  const parts = [{ kind: 'text', text: 'for how many?' }]
  const message = { kind: 'message', role: 'agent', messageId: 'm', parts }
  return startAgent(({ params }, response) => {
    const { taskId } = params['message'] as { taskId?: string }
    const status = taskId === undefined ? { state: 'input-required', message } : { state: 'completed' }
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ jsonrpc: '2.0', id: null, result: { kind: 'task', id: 't1', contextId: 'c1', status } }),
    )
  })
}

/** Connects a client with forms. Before each answer of its user `answering` is called. */
async function connect(url: () => string, answering: () => Promise<void>): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
  )
  client.setRequestHandler('elicitation/create', async () => {
    await answering()
    return { action: 'accept', content: { answer: 'four' } }
  })
  const transport = new StreamableHTTPClientTransport(new URL(`${url()}/mcp`), {
    fetch: (_url, init) => fetch(`${url()}/mcp`, init),
  })
  await client.connect(transport)
  onTestFinished(() => client.close())
  return client
}

test('M20 - a server that restarted continues a call that asked for input', async () => {
  const store = { path: testFolder() }
  let server = await serve({ store })
  const agent = await startClerk()
  await register(server.http.url, { agent_id: 'clerk', name: 'Clerk', url: agent.url })
  const client = await connect(
    () => server.http.url,
    async () => {
      await server.close()
      server = await serve({ store })
    },
  )
  expect(await client.callTool(CALL)).toMatchObject({ isError: false })
  expect(agent.asked.at(-1)?.params).toMatchObject({ message: { taskId: 't1', parts: [{ text: 'four' }] } })
})

test.skipIf(NATS_SERVER === undefined)('M20 - another node continues a call that asked for input', async () => {
  const nats = await startNats()
  const [one, other] = [await serveNode(nats), await serveNode(nats)]
  const agent = await startClerk()
  await register(one.http.url, { agent_id: 'clerk', name: 'Clerk', url: agent.url })
  await expect.poll(() => listed(other.http.url), PATIENT).toEqual(['clerk'])
  let { url } = one.http
  const client = await connect(
    () => url,
    async () => {
      url = other.http.url
    },
  )
  expect(await client.callTool(CALL)).toMatchObject({ isError: false })
  url = other.http.url
  expect(await client.callTool(CALL)).toMatchObject({ isError: false })
  expect(agent.asked).toHaveLength(4)
})
