import { expect, test } from 'vitest'

import { oneTask } from './inboxes.ts'
import { bearer, manage, tokens } from './management-server.ts'

const services = { agentInboxes: oneTask() }

test('agent inboxes - the depth of every inbox, and of one', async () => {
  const { get } = await manage({ services })
  const a = { agent_id: 'a', waiting: 1, in_flight: 2, oldest_seconds: 3 }
  expect((await get('/api/agent_inboxes')).data).toEqual({ items: [a], next_cursor: null, total: 1 })
  expect((await get('/api/agent_inboxes?agent_id=b')).data).toMatchObject({ items: [], total: 0 })
})

test('agent inboxes - the tasks of an agent in pages', async () => {
  const { get } = await manage({ services })
  const { data } = await get('/api/agent_tasks?agent_id=a&limit=1')
  expect(data.items).toEqual([
    {
      task_id: 't',
      agent_id: 'a',
      caller: 'alice',
      context_id: 'c',
      phase: 'stored',
      attempt: 0,
      created_at: '2026-01-01T00:00:00.000Z',
      expires_at: '2026-01-08T00:00:00.000Z',
      cancel_requested: false,
    },
  ])
  expect((await get(`/api/agent_tasks?agent_id=a&cursor=${data.next_cursor}`)).data).toEqual({
    items: [],
    next_cursor: null,
    total: 1,
  })
  expect((await get('/api/agent_tasks?agent_id=b')).data).toMatchObject({ code: 'INBOX_NOT_FOUND', agent_id: 'b' })
  expect((await get('/api/agent_tasks?agent_id=a&cursor=!')).data).toMatchObject({ code: 'PARAMETER_INVALID' })
})

test('agent inboxes - the events of a task, with no half character at the end of a cut payload', async () => {
  const { get } = await manage({ services })
  const path = '/api/agent_task_events?agent_id=a&task_id=t'
  expect((await get(path)).data).toEqual({
    agent_id: 'a',
    run: 'r',
    caller: 'alice',
    first_sequence: 1,
    items: [
      {
        sequence: 1,
        time: '2026-01-01T00:00:00.000Z',
        kind: 'status',
        state: 'TASK_STATE_WORKING',
        body: '{"result":"ü"}',
        body_size: 15,
        truncated: false,
      },
    ],
    next_sequence: 2,
    is_over: false,
  })
  expect((await get(`${path}&from_sequence=7&max_body_size=12`)).data.items).toMatchObject([
    { sequence: 7, body: '{"result":"', truncated: true },
  ])
  expect((await get('/api/agent_task_events?agent_id=a&task_id=x')).data).toMatchObject({ code: 'TASK_NOT_FOUND' })
})

test('agent inboxes - a task is canceled with an entry in the audit log, by a caller who may write', async () => {
  const { act, get } = await manage({ services, authenticator: tokens() })
  const headers = bearer('op:ReadWrite')
  const args = { agent_id: 'a', task_id: 't' }
  expect((await act('cancel_agent_task', args, bearer('op:ReadOnly'))).status).toBe(403)
  expect(await act('cancel_agent_task', args, headers)).toMatchObject({
    error: false,
    data: { task_id: 't', phase: 'done', reason: 'CANCELED' },
  })
  expect(await act('cancel_agent_task', { ...args, task_id: 'x' }, headers)).toMatchObject({
    error: true,
    data: { code: 'TASK_NOT_FOUND', agent_id: 'a', task_id: 'x' },
  })
  await expect
    .poll(async () => (await get('/api/audit?action=cancel_agent_task', headers)).data.items)
    .toMatchObject([
      { client: 'op', agent: 'a', outcome: 'failure', code: 'TASK_NOT_FOUND' },
      { client: 'op', agent: 'a', outcome: 'success', detail: 'task t of alice is done' },
      { client: 'op', outcome: 'denied' },
    ])
})

test('agent inboxes - there are none without agents', async () => {
  const { act, get } = await manage()
  expect((await get('/api/agent_inboxes')).data).toEqual({ items: [], next_cursor: null, total: 0 })
  expect((await get('/api/agent_tasks?agent_id=a')).data).toMatchObject({ code: 'INBOX_NOT_FOUND' })
  expect((await act('cancel_agent_task', { agent_id: 'a', task_id: 't' })).data).toMatchObject({
    code: 'TASK_NOT_FOUND',
  })
})
