import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { CallToolResult, Progress } from '@modelcontextprotocol/sdk/types.js'
import { expect, onTestFinished, test } from 'vitest'

import { register, silent, startAgent, withResult } from './support/agent.ts'
import { startSdkAgent } from './support/sdk-agent.ts'
import { serve } from './support/server.ts'

interface ToolAnswer {
  readonly text: string
  readonly isError: boolean
}

type CallTool = (name: string, args: object, onprogress?: (progress: Progress) => void) => Promise<ToolAnswer>

/** Starts a server and connects the official client to it. */
async function connected(): Promise<{ base: string; call: CallTool }> {
  const { http } = await serve()
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${http.url}/mcp`)))
  onTestFinished(() => client.close())
  // The client checks results against the tools' output schemas once it knows them.
  await client.listTools()
  const call: CallTool = async (name, args, onprogress) => {
    const options = { timeout: 60_000, ...(onprogress ? { onprogress } : {}) }
    const result = (await client.callTool({ name, arguments: { ...args } }, undefined, options)) as CallToolResult
    const [block] = result.content
    if (block?.type !== 'text') throw new Error('not a text block')
    return { text: block.text, isError: result.isError === true }
  }
  return { base: http.url, call }
}

// The rules of the tools are tested in connector-mcp, those of calls to agents in connector-a2a: this is the way through both.
test('TOOL-24, TOOL-25, TOOL-26, TOOL-27, TOOL-28 - agent tools - the official client lists, describes and calls agents of any kind', async () => {
  const { base, call } = await connected()
  const agent = await startAgent((asked, response) => {
    if (asked.method === 'print/start') {
      const error = { code: -32050, message: 'out of paper', data: { tray: 2 } }
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error }))
    } else response.end('{"jsonrpc":"2.0","result":{"b":12345678901234567890.10,"a":"ü","a":1},"id":7}')
  })
  const skills = [{ id: 'sum', name: 'Sums', tags: ['numbers'] }]
  const card = await register(base, { agent_id: 'bare', name: 'Bare', url: agent.url, skills, 'x-own': 1 })
  await register(base, { agent_id: 'sdk', name: 'On the official SDK', url: await startSdkAgent() })
  await register(base, { agent_id: 'down', name: 'Down', url: 'http://127.0.0.1:1/' })

  const list = async (args: object): Promise<readonly string[]> =>
    (JSON.parse((await call('agent_list', args)).text) as { agent_id: string }[]).map(({ agent_id }) => agent_id)
  expect(await list({})).toEqual(['bare', 'down', 'sdk'])
  expect(await list({ skill_tags: ['numbers', 'none'] })).toEqual(['bare'])
  expect(JSON.parse((await call('agent_info', { agent_id: 'bare' })).text)).toEqual(card)

  const result = '{"b":12345678901234567890.10,"a":"ü","a":1}'
  expect(await call('agent_send', { agent_id: 'bare', message: 'Hello' })).toEqual({ text: result, isError: false })
  expect(agent.asked[0]).toMatchObject({ method: 'message/send', headers: { 'x-broker-caller-id': 'anonymous' } })
  expect(await call('agent_query', { agent_id: 'bare', method: 'print/start' })).toEqual({
    isError: true,
    text: '{"code":-32050,"message":"out of paper","data":{"tray":2}}',
  })

  const sent = await call('agent_send', { agent_id: 'sdk', message: 'quietly now' })
  const task = JSON.parse(sent.text) as { id: string }
  expect(task).toMatchObject({ kind: 'task', artifacts: [{ parts: [{ kind: 'text', text: 'QUIETLY NOW' }] }] })
  const get = (id: string) => call('agent_query', { agent_id: 'sdk', method: 'tasks/get', params: { id } })
  expect(JSON.parse((await get(task.id)).text)).toMatchObject({ id: task.id, status: { state: 'completed' } })
  expect(await get('no')).toMatchObject({ isError: true, text: expect.stringContaining('-32001') })

  for (const [agent_id, reason] of [
    ['nobody', /AGENT_NOT_FOUND/],
    ['Not An Id', /AGENT_NOT_FOUND/],
    ['down', /AGENT_UNAVAILABLE.*agent unreachable: connection refused/],
  ] as const) {
    const answer = await call('agent_send', { agent_id, message: 'Hello?' })
    expect(answer).toMatchObject({ isError: true, text: expect.stringMatching(reason) })
  }
})

test('M6, M12, A2 - agent tools - a call reports progress, returns at once without blocking, and ends at its time-out', async () => {
  const { base, call } = await connected()
  const reported = Promise.withResolvers<void>()
  const worker = await startAgent(async (asked, response) => {
    await reported.promise
    await withResult('done')(asked, response)
  })
  const quiet = await startAgent(silent)
  await register(base, { agent_id: 'worker', name: 'Worker', url: worker.url })
  await register(base, { agent_id: 'silent', name: 'Silent', url: quiet.url })

  const progress: Progress[] = []
  const answer = call('agent_send', { agent_id: 'worker', message: 'Work' }, (one) => {
    progress.push(one)
    reported.resolve()
  })
  expect(await answer).toEqual({ isError: false, text: '"done"' })
  expect(progress.length).toBeGreaterThan(0)

  const accepted = await call('agent_send', { agent_id: 'silent', message: 'Go', blocking: false })
  expect(accepted).toMatchObject({ isError: false, text: expect.stringContaining('accepted') })
  await expect.poll(() => quiet.asked.length).toBe(1)

  const begin = performance.now()
  const late = await call('agent_send', { agent_id: 'silent', message: 'Hurry', timeout_seconds: 1 })
  const seconds = (performance.now() - begin) / 1000
  expect(late).toMatchObject({ isError: true, text: expect.stringContaining('AGENT_TIMEOUT') })
  // Not the ten seconds that the broker itself would wait longer.
  expect(seconds).toBeGreaterThan(0.99)
  expect(seconds).toBeLessThan(9)
  await expect.poll(() => quiet.gone.length).toBeGreaterThan(0)
})
