import { expect, test } from 'vitest'

import type { Answer } from './support/agent.ts'
import { register, startAgent, withResult } from './support/agent.ts'
import { serve } from './support/server.ts'
import { SseClient } from '@signalbox/testkit/sse-client'
import { getTask, startTask } from './support/tasks.ts'

/** A tool, a task, a stream or an agent, as far as the tests read it. */
interface Item {
  readonly id: string
  readonly name: string
  readonly events: readonly object[]
}

interface ManagementAnswer {
  readonly error: boolean
  readonly error_string: string
  readonly data: { readonly items: readonly Item[] }
}

async function read(response: Promise<Response>): Promise<ManagementAnswer> {
  return (await (await response).json()) as ManagementAnswer
}

function operatorOf(api: string) {
  return {
    get: (path: string) => read(fetch(api + path)),
    act: (action: string, args: object) =>
      read(
        fetch(`${api}/api/actions/${action}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(args),
        }),
      ),
  }
}

test('console - every tool of /mcp is listed with its schemas, and an operator calls it', async () => {
  const { api, broker } = await serve()
  const { get, act } = operatorOf(api.url)
  const { data } = await get('/api/tools')
  expect(data.items.map(({ name }) => name)).toContain('agent_send')
  expect(data.items.find(({ name }) => name === 'queue_send')).toMatchObject({
    input_schema: { type: 'object', required: expect.arrayContaining(['channel', 'body']) },
  })
  const call = (name: string, args: object) => act('call_tool', { name, arguments: args })
  expect(await call('queue_send', { channel: 'orders', body: 'x' })).toMatchObject({ data: { is_error: false } })
  expect(await call('queue_receive', { channel: 'orders', max_messages: 1 })).toMatchObject({
    data: { is_error: false, structured: { messages: [{ body: 'x' }] } },
  })
  const orders = async () => (await broker.as({ clientId: 'a' }).channels.info('queues', 'orders')).queue
  await expect.poll(orders).toMatchObject({ waiting: 0, inFlight: 0 })
  expect(await call('queue_send', { channel: 'orders' })).toMatchObject({
    error: true,
    error_string: expect.stringContaining('invalid arguments for queue_send'),
    data: { code: 'ARGUMENT_INVALID' },
  })
  expect(await call('channel_info', { channel: 'none', type: 'queues' })).toMatchObject({
    error: false,
    data: { is_error: true, text: expect.stringContaining('CHANNEL_NOT_FOUND') },
  })
  expect(await call('no_such_tool', {})).toMatchObject({ data: { code: 'TOOL_NOT_FOUND' } })
})

/** Streams an event, and then nothing. */
const streaming: Answer = (asked, response) => {
  if (asked.method !== 'message/stream') return withResult('noted')(asked, response)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('event: task.status\ndata: {"type":"status_update","payload":{"state":"working"}}\n\n')
}

test('console - an open stream is listed, and an operator ends it', async () => {
  const { http, api } = await serve()
  const { get, act } = operatorOf(api.url)
  const agent = await startAgent(streaming)
  await register(http.url, { agent_id: 'cook', name: 'Cook', url: agent.url })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} })
  const events = await SseClient.open(
    `${http.url}/a2a/cook`,
    { 'content-type': 'application/json' },
    { method: 'POST', body },
  )
  await events.next()
  const [stream] = (await get('/api/streams')).data.items
  expect(stream).toMatchObject({ agent_id: 'cook', client: 'anonymous', event_count: 1 })
  expect(await act('cancel_stream', { id: stream?.id })).toMatchObject({ error: false })
  await events.ended
  expect(events.seen.at(-1)?.event).toBe('task.error')
  await expect.poll(async () => (await get('/api/streams')).data.items).toEqual([])
  await expect.poll(() => agent.gone.length, { timeout: 20_000 }).toBe(1)
  expect(await act('cancel_stream', { id: stream?.id })).toMatchObject({ data: { code: 'STREAM_NOT_FOUND' } })
})

test('console - an operator calls an agent and gets its events', async () => {
  const { http, api } = await serve()
  const { get, act } = operatorOf(api.url)
  const agent = await startAgent(streaming)
  await register(http.url, { agent_id: 'cook', name: 'Cook', url: agent.url })
  const events = await SseClient.open(
    `${api.url}/api/actions/call_agent`,
    { 'content-type': 'application/json' },
    { method: 'POST', body: JSON.stringify({ agent_id: 'cook', message: 'soup', context_id: 'c1' }) },
  )
  expect(await events.next()).toMatchObject({ event: 'task.status' })
  expect(agent.asked[0]?.params).toMatchObject({
    message: { parts: [{ kind: 'text', text: 'soup' }], contextId: 'c1' },
  })
  const [stream] = (await get('/api/streams')).data.items
  expect(stream).toMatchObject({ agent_id: 'cook', client: 'anonymous' })
  expect((await get('/api/agents')).data.items[0]).toMatchObject({ agent_id: 'cook', in_flight: 1 })
  await act('cancel_stream', { id: stream?.id })
  await events.ended
  expect(events.seen.at(-1)?.event).toBe('task.error')
  await expect.poll(async () => (await get('/api/streams')).data.items).toEqual([])
  await expect.poll(() => agent.gone.length, { timeout: 20_000 }).toBe(1)
})

test('console - an agent that does not stream answers an operator with one event', async () => {
  const { http, api } = await serve()
  const { act } = operatorOf(api.url)
  const agent = await startAgent(withResult('soup'))
  await register(http.url, { agent_id: 'cook', name: 'Cook', url: agent.url })
  const call = async (agentId: string) => act('call_agent', { agent_id: agentId, message: 'x' })
  const response = await fetch(`${api.url}/api/actions/call_agent`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agent_id: 'cook', message: 'x' }),
  })
  expect(await response.text()).toMatch(
    /event: task\.done\ndata: \{"stream_id":"[0-9a-f-]{36}","type":"done","payload":/,
  )
  expect(await call('nobody')).toMatchObject({ data: { code: 'AGENT_NOT_FOUND' } })
  expect(await call('Not An Id')).toMatchObject({ data: { code: 'AGENT_NOT_FOUND' } })
  await register(http.url, { agent_id: 'gone', name: 'Gone', url: 'http://127.0.0.1:1/' })
  expect(await call('gone')).toMatchObject({ data: { code: 'AGENT_CALL_FAILED', json_rpc_code: -32_003 } })
})

test('console - a task is listed with its events, and an operator cancels it', async () => {
  const { http, api } = await serve({ connectors: { mcp: { tasks: { afterMs: 100 } } } })
  const { get, act } = operatorOf(api.url)
  const agent = await startAgent(() => {})
  await register(http.url, { agent_id: 'clerk', name: 'Clerk', url: agent.url })
  const id = await startTask(http.url, 'agent_send', { agent_id: 'clerk', message: 'slow' })
  const underWay = async () => (await get('/api/tasks?under_way=true')).data.items
  await expect.poll(underWay).toMatchObject([
    {
      id,
      tool: 'agent_send',
      owner: 'anonymous',
      status: 'working',
      events: [{ event: 'created' }, { event: 'working' }],
    },
  ])
  expect(await act('cancel_task', { id })).toMatchObject({
    data: { id, status: 'cancelled', status_message: 'an operator cancelled the task' },
  })
  expect(await getTask(http.url, id)).toMatchObject({ status: 'cancelled' })
  await expect.poll(underWay).toEqual([])
  const lastEvent = async () => (await get('/api/tasks')).data.items[0]?.events.at(-1)
  await expect.poll(lastEvent).toMatchObject({ event: 'cancelled' })
  expect(await act('cancel_task', { id: 'nothing' })).toMatchObject({ data: { code: 'TASK_NOT_FOUND' } })
})
