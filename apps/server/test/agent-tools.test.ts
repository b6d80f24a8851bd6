import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult, Progress } from '@modelcontextprotocol/sdk/types.js'
import { expect, onTestFinished, test } from 'vitest'

import { register, silent, startAgent, withResult } from './support/agent.ts'
import { startSdkAgent } from './support/sdk-agent.ts'
import { serve } from './support/server.ts'

/** The official client, connected to a server of its own. */
async function connected(): Promise<{ base: string; client: Client }> {
  const { http } = await serve()
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${http.url}/mcp`)))
  onTestFinished(() => client.close())
  // The client checks results against the tools' output schemas once it knows them.
  await client.listTools()
  return { base: http.url, client }
}

async function call(
  client: Client,
  name: string,
  args: Record<string, unknown>,
  onprogress?: (progress: Progress) => void,
): Promise<{ text: string; isError: boolean }> {
  const result = (await client.callTool({ name, arguments: args }, undefined, {
    timeout: 60_000,
    ...(onprogress ? { onprogress } : {}),
  })) as CallToolResult
  const [block] = result.content
  if (block?.type !== 'text') throw new Error('not a text block')
  return { text: block.text, isError: result.isError === true }
}

test('TOOL-24, TOOL-25 - agent_list and agent_info show what is registered', async () => {
  const { base, client } = await connected()
  const skills = [{ id: 'sum', name: 'Sums', tags: ['numbers'] }]
  const card = await register(base, { agent_id: 'sums', name: 'Sums', url: 'http://127.0.0.1:1/', skills, 'x-own': 1 })
  await register(base, { agent_id: 'other', name: 'Other', url: 'http://127.0.0.1:1/' })
  const list = async (args: Record<string, unknown>) =>
    (JSON.parse((await call(client, 'agent_list', args)).text) as { agent_id: string }[]).map(
      ({ agent_id }) => agent_id,
    )
  expect(await list({})).toEqual(['other', 'sums'])
  expect(await list({ skill_tags: ['numbers', 'none'] })).toEqual(['sums'])
  expect(JSON.parse((await call(client, 'agent_info', { agent_id: 'sums' })).text)).toEqual(card)
  expect(await call(client, 'agent_info', { agent_id: 'nobody' })).toMatchObject({ isError: true })
})

test('TOOL-26, M15, A4 - agent_send talks to an agent on bare node:http, and returns its result as it stands', async () => {
  const { base, client } = await connected()
  const result = '{"b":12345678901234567890.10,"a":"ü","a":1}'
  const agent = await startAgent((_asked, response) => void response.end(`{"jsonrpc":"2.0","result":${result},"id":7}`))
  await register(base, { agent_id: 'bare', name: 'Bare', url: agent.url })
  const args = { agent_id: 'bare', message: 'Hello', context_id: 'c1', timeout_seconds: 20 }
  expect(await call(client, 'agent_send', args)).toEqual({ text: result, isError: false })
  expect(agent.asked).toHaveLength(1)
  expect(agent.asked[0]).toMatchObject({
    method: 'message/send',
    headers: { 'content-type': 'application/json', 'x-broker-caller-id': 'anonymous' },
    params: {
      message: {
        kind: 'message',
        role: 'user',
        messageId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        parts: [{ kind: 'text', text: 'Hello' }],
        contextId: 'c1',
      },
      contextId: 'c1',
      configuration: { blocking: true, timeout: 20 },
    },
  })
})

test('TOOL-26, TOOL-27 - an agent on the official A2A SDK answers agent_send with a task, which agent_query finds', async () => {
  const { base, client } = await connected()
  await register(base, { agent_id: 'shouting', name: 'Shouting', url: await startSdkAgent() })
  const sent = await call(client, 'agent_send', { agent_id: 'shouting', message: 'quietly now' })
  expect(sent.isError).toBe(false)
  const task = JSON.parse(sent.text) as { id: string }
  expect(task).toMatchObject({
    kind: 'task',
    status: { state: 'completed' },
    artifacts: [{ parts: [{ kind: 'text', text: 'QUIETLY NOW' }] }],
  })
  const found = await call(client, 'agent_query', {
    agent_id: 'shouting',
    method: 'tasks/get',
    params: { id: task.id },
  })
  expect(JSON.parse(found.text)).toMatchObject({ id: task.id, status: { state: 'completed' } })
  const missing = await call(client, 'agent_query', { agent_id: 'shouting', method: 'tasks/get', params: { id: 'no' } })
  expect(missing.isError).toBe(true)
  expect(JSON.parse(missing.text)).toMatchObject({ code: -32001 })
})

test("M13 - a JSON-RPC error of the agent's is isError with its code, message and data", async () => {
  const { base, client } = await connected()
  const error = { code: -32050, message: 'out of paper', data: { tray: 2 } }
  const agent = await startAgent(
    (_asked, response) => void response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error })),
  )
  await register(base, { agent_id: 'printer', name: 'Printer', url: agent.url })
  const answer = await call(client, 'agent_query', { agent_id: 'printer', method: 'print/start' })
  expect(answer).toEqual({ isError: true, text: JSON.stringify(error) })
})

test('M12 - agent_send without blocking returns when the request is accepted', async () => {
  const { base, client } = await connected()
  const agent = await startAgent(silent)
  await register(base, { agent_id: 'silent', name: 'Silent', url: agent.url })
  const answer = await call(client, 'agent_send', { agent_id: 'silent', message: 'Go', blocking: false })
  expect(answer).toMatchObject({ isError: false, text: expect.stringContaining('accepted') })
  await expect.poll(() => agent.asked.length).toBe(1)
  expect(agent.asked[0]?.params).toMatchObject({ configuration: { blocking: false } })
})

test('M6 - agent_send tells its progress while the agent works', async () => {
  const { base, client } = await connected()
  const reported = Promise.withResolvers<void>()
  const agent = await startAgent(async (asked, response) => {
    await reported.promise
    await withResult('done')(asked, response)
  })
  await register(base, { agent_id: 'worker', name: 'Worker', url: agent.url })
  const progress: Progress[] = []
  const answer = call(client, 'agent_send', { agent_id: 'worker', message: 'Work' }, (one) => {
    progress.push(one)
    reported.resolve()
  })
  expect(await answer).toEqual({ isError: false, text: '"done"' })
  expect(progress.length).toBeGreaterThan(0)
})

test('A2, TOOL-28 - an agent that takes longer than timeout_seconds is isError after that time, and cut off', async () => {
  const { base, client } = await connected()
  const agent = await startAgent((asked, response) => {
    const timer = setTimeout(() => void withResult('late')(asked, response), 2_000)
    response.once('close', () => clearTimeout(timer))
  })
  await register(base, { agent_id: 'slow', name: 'Slow', url: agent.url })
  const begin = performance.now()
  const answer = await call(client, 'agent_send', { agent_id: 'slow', message: 'Hurry', timeout_seconds: 1 })
  const seconds = (performance.now() - begin) / 1000
  expect(answer).toMatchObject({ isError: true, text: expect.stringContaining('AGENT_TIMEOUT') })
  // Not the ten seconds that the broker itself would wait longer.
  expect(seconds).toBeGreaterThan(0.99)
  expect(seconds).toBeLessThan(9)
  await expect.poll(() => agent.gone.length).toBe(1)
})

test('TOOL-28 - agent_send and agent_query to an agent that does not exist are isError', async () => {
  const { client } = await connected()
  for (const [name, args] of [
    ['agent_send', { agent_id: 'nobody', message: 'Hello?' }],
    ['agent_query', { agent_id: 'nobody', method: 'tasks/get' }],
    ['agent_send', { agent_id: 'Not An Id', message: 'Hello?' }],
  ] as const) {
    expect(await call(client, name, args)).toMatchObject({
      isError: true,
      text: expect.stringContaining('AGENT_NOT_FOUND'),
    })
  }
})

test('A3 - an agent that is down is isError, and says that it did not process the request', async () => {
  const { base, client } = await connected()
  await register(base, { agent_id: 'down', name: 'Down', url: 'http://127.0.0.1:1/' })
  expect(await call(client, 'agent_send', { agent_id: 'down', message: 'Hello?' })).toMatchObject({
    isError: true,
    text: expect.stringMatching(/AGENT_UNAVAILABLE.*agent unreachable: connection refused/),
  })
})
