import { expect, test } from 'vitest'

import type { StreamsPort, TasksPort, TaskStatus, ToolsPort } from '../src/index.ts'
import { bearer, manage, text, tokens } from './management-server.ts'

const CALLER = { clientId: 'shop' }

interface Requests {
  readonly waiting: readonly { readonly state: string }[]
}

test('requests - lists waiting commands and queries until they end', async () => {
  const { get, broker } = await manage()
  const { commands, queries } = broker.as(CALLER)
  const answer = Promise.withResolvers<void>()
  await broker.as({ clientId: 'kitchen' }).queries.subscribe('menu', {}, async () => {
    await answer.promise
    return { error: 'closed' }
  })
  const unanswered = commands.send(
    'ring',
    { body: text('x') },
    { timeoutMs: 60_000, signal: AbortSignal.timeout(50_000) },
  )
  const asked = queries.send('menu', { body: text('soup?') }, { timeoutMs: 60_000 })
  const requests = async (query = '') => (await get<Requests>(`/api/requests${query}`)).data
  await expect.poll(async () => (await requests()).waiting[1]?.state).toBe('delivered')
  expect(await requests()).toMatchObject({
    node: 'n1',
    waiting_count: 2,
    unlisted: 0,
    waiting: [
      { type: 'commands', channel: 'ring', client: 'shop', body_size: 1, state: 'waiting', delivered_at: null },
      { type: 'queries', channel: 'menu', client: 'shop', state: 'delivered', responder: 'kitchen', outcome: null },
    ],
    ended: [],
  })
  expect(await requests('?channel=menu&limit=1')).toMatchObject({ waiting_count: 1, waiting: [{ channel: 'menu' }] })
  answer.resolve()
  await asked
  await broker.as(CALLER).commands.subscribe('ring', {}, () => ({}))
  await unanswered
  await commands.send('nobody', { body: text('x') }, { timeoutMs: 20 }).catch(() => {})
  expect(await requests()).toMatchObject({
    waiting: [],
    ended: [
      { channel: 'nobody', outcome: 'NO_SUBSCRIBER', responder: null },
      { channel: 'ring', outcome: 'executed', responder: 'shop', ended_at: expect.stringMatching(/Z$/) },
      { channel: 'menu', outcome: 'rejected' },
    ],
  })
})

const TASK: TaskStatus = {
  id: 't1',
  tool: 'agent_send',
  owner: 'shop',
  status: 'working',
  createdAt: 1_700_000_000_000,
  updatedAt: 1_700_000_001_000,
  expiresAt: 1_700_000_002_000,
  events: [{ at: 1_700_000_000_000, event: 'created' }],
}

test('tasks - are listed with their events, and can be cancelled', async () => {
  const tasks: TasksPort = {
    list: () => [TASK, { ...TASK, id: 't2', status: 'completed', statusMessage: 'done' }],
    cancel: async (id) => (id === 't1' ? { ...TASK, status: 'cancelled' } : undefined),
  }
  const { get, act } = await manage({ services: { tasks }, authenticator: tokens() })
  const operator = bearer('op:ReadWrite')
  expect((await get('/api/tasks', operator)).data).toMatchObject({
    total: 2,
    items: [
      { id: 't1', tool: 'agent_send', owner: 'shop', events: [{ time: '2023-11-14T22:13:20.000Z', event: 'created' }] },
      { id: 't2', status_message: 'done' },
    ],
  })
  expect((await get('/api/tasks?under_way=true', operator)).data).toMatchObject({ total: 1, items: [{ id: 't1' }] })
  expect(await act('cancel_task', { id: 't1' }, operator)).toMatchObject({ data: { id: 't1', status: 'cancelled' } })
  expect(await act('cancel_task', { id: 't9' }, operator)).toMatchObject({ data: { code: 'TASK_NOT_FOUND', id: 't9' } })
  expect(await act('cancel_task', { id: 't1' }, bearer('op:ReadOnly'))).toMatchObject({ status: 403 })
})

test('streams - are listed, and can be ended', async () => {
  const ended: string[] = []
  const streams: StreamsPort = {
    list: () => [
      {
        id: 's1',
        agentId: 'cook',
        client: 'shop',
        openedAt: 1_700_000_000_000,
        lastEventAt: 1_700_000_001_000,
        eventCount: 1,
        events: [{ at: 1_700_000_001_000, event: 'status update', detail: '80 bytes' }],
      },
      { id: 's2', agentId: 'cook', client: 'shop', openedAt: 1_700_000_000_000, eventCount: 0, events: [] },
    ],
    cancel: (id) => id === 's1' && ended.push(id) > 0,
  }
  const { get, act } = await manage({ services: { streams } })
  expect((await get('/api/streams')).data.items).toEqual([
    {
      id: 's1',
      agent_id: 'cook',
      client: 'shop',
      opened_at: '2023-11-14T22:13:20.000Z',
      last_event_at: '2023-11-14T22:13:21.000Z',
      event_count: 1,
      events: [{ time: '2023-11-14T22:13:21.000Z', event: 'status update', detail: '80 bytes' }],
    },
    {
      id: 's2',
      agent_id: 'cook',
      client: 'shop',
      opened_at: '2023-11-14T22:13:20.000Z',
      last_event_at: null,
      event_count: 0,
      events: [],
    },
  ])
  expect(await act('cancel_stream', { id: 's1' })).toMatchObject({ error: false, data: { id: 's1' } })
  expect(ended).toEqual(['s1'])
  expect(await act('cancel_stream', { id: 's3' })).toMatchObject({ data: { code: 'STREAM_NOT_FOUND' } })
})

test("tools - are listed with their schemas, and called in the operator's name", async () => {
  const tools: ToolsPort = {
    list: () => [
      {
        name: 'whoami',
        title: 'Who',
        description: 'Says who.',
        inputSchema: { type: 'object' },
        outputSchema: {},
        annotations: {},
      },
    ],
    call: async (name, args, { broker }) =>
      name === 'whoami' ? { text: broker.caller.clientId, isError: false, structured: args } : undefined,
  }
  const { get, act } = await manage({ services: { tools }, authenticator: tokens() })
  const operator = bearer('op:ReadWrite')
  expect((await get('/api/tools', operator)).data.items).toMatchObject([
    { name: 'whoami', input_schema: { type: 'object' } },
  ])
  expect(await act('call_tool', { name: 'whoami', arguments: { a: 1 } }, operator)).toMatchObject({
    data: { name: 'whoami', is_error: false, text: 'op', structured: { a: 1 } },
  })
  expect(await act('call_tool', { name: 'other' }, operator)).toMatchObject({ data: { code: 'TOOL_NOT_FOUND' } })
  expect(await act('call_tool', { name: 'whoami' }, bearer('op:ReadOnly'))).toMatchObject({ status: 403 })
})

test('tasks, streams and tools - without the connectors the lists are empty', async () => {
  const { get, act } = await manage()
  for (const path of ['/api/tasks', '/api/streams', '/api/tools']) expect((await get(path)).data.items).toEqual([])
  for (const action of ['cancel_task', 'cancel_stream']) {
    expect(await act(action, { id: 'x' })).toMatchObject({ data: { code: expect.stringContaining('NOT_FOUND') } })
  }
  expect(await act('call_tool', { name: 'x' })).toMatchObject({ data: { code: 'TOOL_NOT_FOUND' } })
})
