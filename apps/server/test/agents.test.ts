import { CORE_TOOL_NAMES, TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { expect, onTestFinished, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import type { RunningServer } from '../src/server.ts'
import { callAgent, listed, postJson, register, silent, startAgent, withResult } from './support/agent.ts'
import { callTool, rpc } from './support/mcp.ts'
import { serve } from './support/server.ts'

const SKILLS = [{ id: 'echo', name: 'Echo', tags: ['text'] }]

async function metricsPage(api: string): Promise<string> {
  return (await fetch(`${api}/metrics`)).text()
}

async function toolNames(base: string): Promise<readonly string[]> {
  const { result } = (await rpc(base, 'tools/list', {})) as { result: { tools: { name: string }[] } }
  return result.tools.map(({ name }) => name)
}

test('MCP-8 - agents - an agent that registers is on every surface', async () => {
  const { http, api } = await serve()
  const agent = await startAgent(withResult({ said: 'yes' }))
  const card = await register(http.url, { agent_id: 'echo', name: 'Echo', url: agent.url, skills: SKILLS })
  expect(card).toMatchObject({ registered_by: 'anonymous', protocolVersions: ['1.0'] })
  expect(await listed(http.url)).toEqual(['echo'])
  expect(await (await fetch(`${http.url}/agents/echo`)).json()).toEqual(card)
  expect(await (await fetch(`${http.url}/a2a/echo/.well-known/agent-card.json`)).json()).toMatchObject({
    ...card,
    url: `${http.url}/a2a/echo/v0.3`,
  })
  expect(await (await fetch(`${http.url}/.well-known/agent-card.json`)).json()).toMatchObject({ name: 'signalbox' })
  expect(await callAgent(http.url, 'echo', 'message/send')).toEqual({ jsonrpc: '2.0', id: 1, result: { said: 'yes' } })
  expect(agent.asked).toMatchObject([{ method: 'message/send', headers: { 'x-broker-caller-id': 'anonymous' } }])
  expect(await toolNames(http.url)).toEqual(TOOL_NAMES)
  expect(JSON.parse((await callTool(http.url, 'agent_list', {})).text)).toEqual([
    { agent_id: 'echo', name: 'Echo', skills: SKILLS },
  ])
  expect(await metricsPage(api.url)).toContain(
    'broker_a2a_requests_total{agent_id="echo",method="message/send",status="success"} 1\n',
  )
})

test('R5, A14 - an agent that misses its time-to-live is removed from every surface, and counted as expired', async () => {
  const { http, api } = await serve({ connectors: { a2a: { agentTtlSeconds: 2 } } })
  const agent = await startAgent(withResult('yes'))
  await register(http.url, { agent_id: 'brief', name: 'Brief', url: agent.url })
  expect(await callAgent(http.url, 'brief', 'message/send')).toMatchObject({ result: 'yes' })
  expect(await metricsPage(api.url)).toContain('agent_id="brief"')
  await expect.poll(() => listed(http.url), { timeout: 15_000 }).toEqual([])
  expect((await fetch(`${http.url}/agents/brief`)).status).toBe(404)
  expect((await fetch(`${http.url}/a2a/brief/.well-known/agent-card.json`)).status).toBe(404)
  expect(await callAgent(http.url, 'brief', 'message/send')).toMatchObject({
    error: { code: -32002, message: 'agent not found: brief' },
  })
  expect((await callTool(http.url, 'agent_list', {})).text).toBe('[]')
  expect(await callTool(http.url, 'agent_send', { agent_id: 'brief', message: 'still there?' })).toMatchObject({
    isError: true,
    text: expect.stringContaining('AGENT_NOT_FOUND'),
  })
  // The registry counts what it has written, which is on every surface a moment before.
  await expect
    .poll(() => metricsPage(api.url))
    .toContain('broker_a2a_registry_operations_total{op="expire",status="success"} 1\n')
  const page = await metricsPage(api.url)
  expect(page).not.toContain('agent_id="brief"')
  expect(page).toContain('broker_a2a_errors_total{agent_id="unknown",error_code="-32002"} 1\n')
})

/** Returns the answers of every surface that shows the agent `puller`. */
async function shown({ http, api }: Pick<RunningServer, 'http' | 'api'>): Promise<readonly string[]> {
  const pages = [
    `${http.url}/agents`,
    `${http.url}/agents/puller`,
    `${http.url}/a2a/puller/.well-known/agent-card.json`,
    `${api.url}/api/agents`,
    `${api.url}/api/agent_card?agent_id=puller`,
  ]
  const texts = await Promise.all(pages.map(async (url) => (await fetch(url)).text()))
  const listing = await callTool(http.url, 'agent_list', {})
  const info = await callTool(http.url, 'agent_info', { agent_id: 'puller' })
  return [...texts, listing.text, info.text]
}

test('agents - an agent without a url is on every surface without an address, and stays there while it is offline', async () => {
  const path = testFolder()
  const options = { store: { path }, connectors: { a2a: { agentTtlSeconds: 1 } } }
  const first = await serve(options)
  await register(first.http.url, { agent_id: 'puller', name: 'Puller', a2a: { pull: true } })
  for (const text of await shown(first)) {
    expect(text).toContain('puller')
    expect(text).not.toContain('inbox.invalid')
  }
  const card = () => fetch(`${first.http.url}/agents/puller`).then((response) => response.json())
  await expect.poll(card, { timeout: 15_000 }).toMatchObject({ agent_id: 'puller', offline: true })
  const { data } = (await (await fetch(`${first.api.url}/api/agents`)).json()) as { data: { items: object[] } }
  expect(data.items).toMatchObject([{ agent_id: 'puller', url: '', offline: true, inbox: 'pull' }])
  await expect
    .poll(() => metricsPage(first.api.url))
    .toContain('broker_a2a_registry_operations_total{op="park",status="success"} 1\n')
  await first.close()
  const second = await serve(options)
  for (const text of await shown(second)) {
    expect(text).toContain('puller')
    expect(text).not.toContain('inbox.invalid')
  }
  expect(await (await fetch(`${second.http.url}/agents/puller`)).json()).toMatchObject({ offline: true })
})

test('agents - with CONNECTORSA2_A_LOG=off a card that needs the log is refused', async () => {
  const { http } = await serve({ connectors: { a2a: { log: 'off' } } })
  const card = { agent_id: 'puller', name: 'Puller', a2a: { pull: true } }
  const answer = await postJson(`${http.url}/agents/register`, card)
  expect([answer.status, await answer.json()]).toMatchObject([
    400,
    { error: 'CARD_INVALID', details: [{ field: 'a2a.pull', allowed: expect.stringContaining('CONNECTORSA2_A_LOG') }] },
  ])
})

test('agents - registrations survive a restart', async () => {
  const path = testFolder()
  const agent = await startAgent(withResult('here'))
  const first = await serve({ store: { path } })
  const card = await register(first.http.url, { agent_id: 'lasting', name: 'Lasting', url: agent.url })
  await first.close()
  const { http } = await serve({ store: { path } })
  expect(await (await fetch(`${http.url}/agents/lasting`)).json()).toMatchObject({
    registered_at: card['registered_at'],
    url: agent.url,
  })
  expect(await callAgent(http.url, 'lasting', 'message/send')).toMatchObject({ result: 'here' })
})

test('R10 - CONNECTORSA2_A_ENABLE=false takes the paths, the tools and the series away', async () => {
  const { http, api } = await serve({ connectors: { a2a: { enable: false } } })
  for (const path of [
    '/agents',
    '/agents/x',
    '/a2a/x',
    '/.well-known/agent-card.json',
    '/a2a/x/.well-known/agent-card.json',
  ]) {
    expect((await fetch(`${http.url}${path}`)).status, path).toBe(404)
  }
  expect((await postJson(`${http.url}/agents/register`, {})).status).toBe(404)
  expect((await postJson(`${http.url}/a2a/x`, {})).status).toBe(404)
  const names = await toolNames(http.url)
  expect(names).toEqual(CORE_TOOL_NAMES)
  expect(await metricsPage(api.url)).not.toContain('broker_a2a_')
})

test('S6 - pages of CONNECTORSA2_A_TRUSTED_ORIGINS may call and list agents, others may not', async () => {
  const origin = 'https://app.example'
  const { http } = await serve({ connectors: { a2a: { trustedOrigins: [origin] } } })
  const list = (page: string) => fetch(`${http.url}/agents`, { headers: { origin: page } })
  const call = (page: string) => postJson(`${http.url}/a2a/x`, { jsonrpc: '2.0', id: 1, method: 'm' }, { origin: page })
  expect([(await list(origin)).status, (await call(origin)).status]).toEqual([200, 200])
  const refused = await call('http://localhost')
  expect([(await list('http://localhost')).status, refused.status, await refused.json()]).toMatchObject([
    403,
    403,
    { error: { code: -32600, message: 'origin not allowed; add it to CONNECTORSA2_A_TRUSTED_ORIGINS' } },
  ])
})

/** Registers an agent at this address; resolves with the status and the code of an error. */
async function answer({ http }: RunningServer, agent_id: string, host: string): Promise<unknown> {
  const card = { agent_id, name: agent_id, url: `http://${host}:4000/` }
  const response = await postJson(`${http.url}/agents/register`, card)
  return [response.status, ((await response.json()) as { error?: string }).error]
}

test('R7, R8 - the limit on agents and the addresses of the settings reach the registry', async () => {
  const [denying, allowing, unset] = await Promise.all([
    serve({ connectors: { a2a: { agentUrlDeny: ['127.0.0.0/8'], maxAgents: 1 } } }),
    serve({ connectors: { a2a: { agentUrlAllow: ['10.0.0.0/8'] } } }),
    serve(),
  ])
  expect(await answer(denying, 'one', '127.0.0.1')).toMatchObject([400, expect.any(String)])
  expect(await answer(denying, 'one', '10.1.2.3')).toEqual([200, undefined])
  expect(await answer(denying, 'two', '10.1.2.4')).toEqual([409, 'AGENT_LIMIT'])
  expect(await answer(allowing, 'one', '127.0.0.1')).toMatchObject([400, expect.any(String)])
  expect(await answer(allowing, 'one', '10.1.2.3')).toEqual([200, undefined])
  expect(await answer(unset, 'one', '169.254.169.254')).toMatchObject([400, expect.any(String)])
})

test('A2, A3 - timeouts, concurrency and the size of responses are as configured', async () => {
  const { http } = await serve({
    connectors: {
      a2a: { defaultTimeoutSeconds: 1, maxTimeoutSeconds: 2, agentMaxConcurrency: 1, agentMaxResponseBytes: 1024 },
    },
  })
  const slow = await startAgent(silent)
  const talkative = await startAgent(withResult('x'.repeat(2_000)))
  await register(http.url, { agent_id: 'slow', name: 'Slow', url: slow.url })
  await register(http.url, { agent_id: 'talkative', name: 'Talkative', url: talkative.url })
  const begin = performance.now()
  const late = await callAgent(http.url, 'slow', 'message/send')
  expect(late).toMatchObject({ error: { code: -32001, message: 'agent timeout' } })
  expect(performance.now() - begin).toBeGreaterThan(990)
  expect(await callAgent(http.url, 'talkative', 'message/send')).toMatchObject({
    error: { code: -32603, message: 'agent response too large' },
  })
  const capped = performance.now()
  const answer = callAgent(http.url, 'slow', 'message/send', { configuration: { timeout: 600 } })
  await expect.poll(() => slow.asked.length).toBe(2)
  expect(await callAgent(http.url, 'slow', 'tasks/get')).toMatchObject({
    error: { code: -32603, message: 'server busy: concurrency limit reached' },
  })
  expect(await answer).toMatchObject({ error: { code: -32001 } })
  expect(performance.now() - capped).toBeGreaterThan(1_990)
})

test('A9 - CONNECTORSA2_A_MAX_SSE_IDLE_SECONDS ends a stream on which nothing happens, which the gauge shows', async () => {
  const { http, api } = await serve({ connectors: { a2a: { maxSseIdleSeconds: 1 } } })
  const quiet = Promise.withResolvers<void>()
  const agent = await startAgent(async (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const status = 'event: task.status\ndata: {"type":"status_update","payload":{"state":"working"}}\n\n'
    const timer = setInterval(() => response.write(status), 100)
    response.write(status)
    await quiet.promise
    clearInterval(timer)
  })
  onTestFinished(() => quiet.resolve())
  await register(http.url, { agent_id: 'quiet', name: 'Quiet', url: agent.url })
  const open = await postJson(`${http.url}/a2a/quiet`, { jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} })
  expect(open.headers.get('content-type')).toContain('text/event-stream')
  const page = await metricsPage(api.url)
  expect(page).toContain('broker_a2a_sse_streams_active 1\n')
  expect(page).toContain('broker_a2a_requests_in_flight{agent_id="quiet"} 1\n')
  quiet.resolve()
  const text = await open.text()
  expect(text).toMatch(/event: task\.error\ndata: \{.*"type":"error".*stream idle timeout/)
  await expect.poll(() => metricsPage(api.url)).toContain('broker_a2a_sse_streams_active 0\n')
  await expect.poll(() => metricsPage(api.url)).not.toContain('broker_a2a_requests_in_flight{agent_id="quiet"} 1')
  // The agent's connection was ended too, and it was told.
  await expect.poll(() => agent.gone.map(({ method }) => method)).toContain('message/stream')
  await expect.poll(() => agent.asked.map(({ method }) => method)).toContain('stream_cancel')
})

test('agents - a shutdown ends streams with an event and finishes calls in flight', async () => {
  const server = await serve({ shutdownSeconds: 10 })
  const { http } = server
  const answering = Promise.withResolvers<void>()
  const agent = await startAgent(async (asked, response) => {
    if (asked.method === 'message/stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('event: task.status\ndata: {"type":"status_update","payload":{"state":"working"}}\n\n')
      return
    }
    await answering.promise
    await withResult('at last')(asked, response)
  })
  await register(http.url, { agent_id: 'busy', name: 'Busy', url: agent.url })
  const stream = await postJson(`${http.url}/a2a/busy`, { jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} })
  const ended = stream.text()
  const call = callAgent(http.url, 'busy', 'message/send')
  const tool = callTool(http.url, 'agent_send', { agent_id: 'busy', message: 'hello' })
  await expect.poll(() => agent.asked.length).toBe(3)
  const closed = server.close()
  expect(await ended).toMatch(/event: task\.error\ndata: \{/)
  answering.resolve()
  expect(await call).toMatchObject({ result: 'at last' })
  expect(await tool).toMatchObject({ isError: false, text: '"at last"' })
  await closed
})

test('probes - readiness says whether the registry, the channel settings and the schedules follow changes', async () => {
  const { http, api } = await serve()
  await register(http.url, { agent_id: 'one', name: 'One', url: 'http://127.0.0.1:1/' })
  const ready = await fetch(`${api.url}/ready`)
  expect(ready.status).toBe(200)
  expect(await ready.json()).toMatchObject({
    checks: expect.arrayContaining([
      { name: 'channel_settings', ok: true, detail: 'current' },
      { name: 'schedules', ok: true, detail: 'current' },
      { name: 'registry', ok: true, detail: '1 agents' },
    ]),
  })
})
