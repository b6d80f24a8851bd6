import { AdmissionControl } from '@signalbox/http-kit'
import { expect, test } from 'vitest'

import type { AgentCall, AgentCallsPort, AgentStatus } from '../src/index.ts'
import { bearer, manage, tokens } from './management-server.ts'

const AGENT: AgentStatus = {
  agent_id: 'writer',
  name: 'Writer',
  version: '1',
  url: 'http://127.0.0.1:1',
  registered_by: 'owner',
  registered_at: Date.UTC(2026, 0, 1),
  last_seen: Date.UTC(2026, 0, 2),
  expires_at: Date.UTC(2026, 0, 3),
  in_flight: 2,
}

test('MGMT-10 - agents are listed with liveness and requests in flight, and an Admin removes them', async () => {
  const agents = new Map(
    [AGENT, { ...AGENT, agent_id: 'reader', expires_at: null }].map((agent) => [agent.agent_id, agent]),
  )
  const removed: string[] = []
  const { get, act } = await manage({
    authenticator: tokens(),
    agents: {
      list: () => [...agents.values()],
      deregister: async (agentId, { clientId }) => {
        removed.push(`${agentId} by ${clientId}`)
        return agents.delete(agentId)
      },
    },
  })
  const admin = bearer('root:Admin')
  expect(await get('/api/agents?limit=1', admin)).toMatchObject({
    data: {
      items: [{ agent_id: 'reader', expires_at: null, is_alive: true }],
      total: 2,
      next_cursor: expect.any(String),
    },
  })
  const { data } = await get('/api/agents', admin)
  expect(data.items[1]).toEqual({
    ...AGENT,
    registered_at: '2026-01-01T00:00:00.000Z',
    last_seen: '2026-01-02T00:00:00.000Z',
    expires_at: '2026-01-03T00:00:00.000Z',
    is_alive: false,
    offline: false,
    durable: false,
  })
  expect(await get('/api/snapshot', admin)).toMatchObject({ data: { agents: { registered: 2, in_flight: 4 } } })
  expect(await act('deregister_agent', { agent_id: 'writer' }, admin)).toMatchObject({
    error: false,
    data: { agent_id: 'writer' },
  })
  expect(await act('deregister_agent', { agent_id: 'writer' }, admin)).toMatchObject({
    data: { code: 'AGENT_NOT_FOUND' },
  })
  expect(removed).toEqual(['writer by root', 'writer by root'])
})

test('agent card - shows the registered card, including fields unknown to the registry', async () => {
  const card = { agent_id: 'writer', name: 'Writer', color: 'blue', skills: [{ id: 'write', name: 'Write' }] }
  const { get } = await manage({
    agents: { list: () => [], deregister: async () => false, card: (id) => (id === 'writer' ? card : undefined) },
  })
  expect((await get('/api/agent_card?agent_id=writer')).data).toEqual({ agent_id: 'writer', card })
  expect((await get('/api/agent_card?agent_id=nobody')).data).toMatchObject({ code: 'AGENT_NOT_FOUND' })
})

const CALL = { agent_id: 'cook', message: 'soup' }

/** Answers each call with a stream that stays open until its signal is aborted. */
function openStreams(calls: AgentCall[]): AgentCallsPort {
  return {
    async open(call) {
      calls.push(call)
      return {
        id: 's1',
        pipeTo: async (response, { headers }) => {
          response.writeHead(200, { ...headers, 'content-type': 'text/event-stream' })
          response.write('event: task.status\ndata: {}\n\n')
          await new Promise((resolve) => call.signal.addEventListener('abort', resolve))
          response.end('event: task.error\ndata: {}\n\n')
        },
      }
    },
  }
}

interface Asked {
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

const post = (url: string, args: object, init: Asked = {}): Promise<Response> =>
  fetch(`${url}/api/actions/call_agent`, {
    method: 'POST',
    body: JSON.stringify(args),
    ...init,
    headers: { 'content-type': 'application/json', ...init.headers },
  })

test("call_agent - streams the agent's events to the operator", async () => {
  const calls: AgentCall[] = []
  const { get, url } = await manage({ services: { agentCalls: openStreams(calls) }, authenticator: tokens() })
  const headers = bearer('op:ReadWrite')
  const client = new AbortController()
  const args = { ...CALL, context_id: 'c1', timeout_seconds: 5 }
  const response = await post(url, args, { headers, signal: client.signal })
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const { value } = (await response.body?.getReader().read()) ?? {}
  expect(new TextDecoder().decode(value)).toBe('event: task.status\ndata: {}\n\n')
  const [call] = calls
  expect(call).toMatchObject({ agentId: 'cook', text: 'soup', contextId: 'c1', timeoutMs: 5_000 })
  expect(call?.operator.clientId).toBe('op')
  const entries = async () => (await get('/api/audit?action=call_agent', headers)).data.items
  await expect.poll(entries).toMatchObject([{ client: 'op', outcome: 'success', detail: 'stream s1 opened' }])
  expect(call?.signal.aborted).toBe(false)
  client.abort()
  await expect.poll(() => call?.signal.aborted).toBe(true)
  expect((await post(url, CALL, { headers: bearer('op:ReadOnly') })).status).toBe(403)
  expect(calls).toHaveLength(1)
})

test('call_agent - ends after the maximum wait, and at a shutdown', async () => {
  const calls: AgentCall[] = []
  const { api, url } = await manage({ services: { agentCalls: openStreams(calls) }, maxWaitMs: 100 })
  expect(await (await post(url, { ...CALL, timeout_seconds: 60 })).text()).toContain('task.error')
  expect(calls[0]).toMatchObject({ timeoutMs: 100 })
  expect(calls[0]?.signal.reason).toMatchObject({ name: 'TimeoutError' })
  const patient = await manage({ services: { agentCalls: openStreams(calls) } })
  const response = await post(patient.url, CALL)
  await patient.api.finish()
  expect(await response.text()).toContain('task.error')
  await api.finish()
})

test('call_agent - reports why the agent did not answer', async () => {
  const { act, get, services } = await refusing()
  expect(await act('call_agent', CALL)).toMatchObject({ data: { code: 'AGENT_NOT_FOUND', agent_id: 'cook' } })
  services.failure = { rpcCode: -32_001, message: 'agent timeout' }
  expect(await act('call_agent', CALL)).toMatchObject({
    status: 200,
    error: true,
    error_string: 'agent timeout',
    data: { code: 'AGENT_CALL_FAILED', agent_id: 'cook', json_rpc_code: -32_001 },
  })
  expect(await act('call_agent', { agent_id: '' })).toMatchObject({ data: { code: 'ARGUMENT_INVALID' } })
  await expect
    .poll(async () => (await get('/api/audit?action=call_agent')).data.items)
    .toMatchObject([{ outcome: 'failure' }, { agent: 'cook', code: 'AGENT_CALL_FAILED' }, { code: 'AGENT_NOT_FOUND' }])
})

async function refusing() {
  const services: { failure?: { rpcCode: number; message: string } } = {}
  return { ...(await manage({ services: { agentCalls: { open: async () => services.failure } } })), services }
}

test('call_agent - finds no agent when there is no gateway', async () => {
  const { act } = await manage()
  expect(await act('call_agent', CALL)).toMatchObject({ data: { code: 'AGENT_NOT_FOUND' } })
})

test('call_agent - the call counts as a stream of its caller', async () => {
  const calls: AgentCall[] = []
  const admission = new AdmissionControl({ limits: { caller: { streams: 1 } } })
  const settings = { services: { agentCalls: openStreams(calls) }, authenticator: tokens(), frontDoor: { admission } }
  const { act, api, url } = await manage(settings)
  const headers = bearer('op:ReadWrite')
  const response = await post(url, CALL, { headers })
  expect(await act('call_agent', CALL, headers)).toMatchObject({
    status: 429,
    data: { code: 'TOO_MANY_REQUESTS', limit: 'caller_streams' },
  })
  expect(calls).toHaveLength(1)
  await api.finish()
  expect(await response.text()).toContain('task.error')
  await expect.poll(() => admission.use).toMatchObject({ streams: 0, requests: 0 })
})
