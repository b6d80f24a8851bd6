import { expect, test } from 'vitest'

import { postJson, register } from './support/agent.ts'
import { command } from './support/commands.ts'
import { serve } from './support/server.ts'

interface Envelope {
  readonly error: boolean
  readonly data: { readonly items: readonly { readonly task_id: string }[]; readonly code?: string }
}

interface Urls {
  readonly http: string
  readonly api: string
}

async function read(response: Promise<Response>): Promise<Envelope> {
  return (await (await response).json()) as Envelope
}

async function start(): Promise<Urls> {
  const { http, api } = await serve()
  await register(http.url, { agent_id: 'laptop', name: 'Laptop', a2a: { pull: true } })
  return { http: http.url, api: api.url }
}

/** Sends a message that waits, and returns the id of its task. */
async function send({ http }: Urls, messageId: string): Promise<string> {
  const message = { messageId, role: 'ROLE_USER', parts: [{ text: 'tidy up' }] }
  const params = { message, configuration: { returnImmediately: true } }
  const request = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params }
  const response = await postJson(`${http}/a2a/laptop`, request, { 'a2a-version': '1.0' })
  const { result } = (await response.json()) as { readonly result: { readonly task: { readonly id: string } } }
  return result.task.id
}

/** Leases a request, and completes it. */
async function work({ http }: Urls): Promise<void> {
  const { items } = (await (await postJson(`${http}/agents/laptop/inbox/lease`, {})).json()) as {
    readonly items: readonly { readonly receipt: string }[]
  }
  const events = [{ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } }]
  await postJson(`${http}/agents/laptop/inbox/events`, { receipt: items[0]?.receipt, offset: 0, events })
}

test('agent inboxes - operators see the depth, the tasks and their events, and cancel a task', async () => {
  const urls = await start()
  const get = (path: string) => read(fetch(urls.api + path))
  const first = await send(urls, 'm1')
  const second = await send(urls, 'm2')
  expect((await get('/api/agents')).data.items).toMatchObject([
    { agent_id: 'laptop', url: '', offline: false, durable: true, inbox: 'pull' },
  ])
  expect((await get('/api/agent_inboxes')).data.items).toMatchObject([
    { agent_id: 'laptop', waiting: 2, in_flight: 0, oldest_seconds: expect.any(Number) },
  ])
  await work(urls)
  const tasks = async (query = '') =>
    (await get(`/api/agent_tasks?agent_id=laptop${query}`)).data.items.map(({ task_id }) => task_id)
  expect(await tasks()).toEqual([second])
  expect(await tasks('&all=true')).toEqual([second, first])
  expect(await get(`/api/agent_task_events?agent_id=laptop&task_id=${first}`)).toMatchObject({
    data: {
      run: first,
      caller: 'anonymous',
      items: [
        { sequence: 1, kind: 'task', state: 'TASK_STATE_SUBMITTED', body: expect.stringContaining('tidy up') },
        { sequence: 2, kind: 'status', state: 'TASK_STATE_COMPLETED' },
        { sequence: 3, kind: 'end' },
      ],
      next_sequence: null,
      is_over: true,
    },
  })
  const cancel = () =>
    read(postJson(`${urls.api}/api/actions/cancel_agent_task`, { agent_id: 'laptop', task_id: second }))
  expect(await cancel()).toMatchObject({ data: { phase: 'done', reason: 'CANCELED' } })
  await expect
    .poll(async () => (await get('/api/audit?action=cancel_agent_task')).data.items)
    .toMatchObject([
      { client: 'anonymous', agent: 'laptop', outcome: 'success', detail: `task ${second} of anonymous is done` },
    ])
})

test('agent inboxes - metrics of the depths, the tasks, the log and the leases', async () => {
  const urls = await start()
  await send(urls, 'm1')
  await send(urls, 'm1')
  await send(urls, 'm2')
  await work(urls)
  const page = await (await fetch(`${urls.api}/metrics`)).text()
  expect(page.split('\n')).toEqual(
    expect.arrayContaining([
      'broker_a2a_inbox_waiting{agent_id="laptop"} 1',
      'broker_a2a_runs{phase="running"} 0',
      'broker_a2a_runs{phase="stored"} 1',
      'broker_a2a_runs{phase="working"} 0',
      'broker_a2a_keyed_total{outcome="first"} 2',
      'broker_a2a_keyed_total{outcome="repeated"} 1',
      'broker_a2a_keyed_total{outcome="refused"} 0',
      'broker_a2a_leases_total{outcome="granted"} 1',
      'broker_a2a_leases_total{outcome="answered"} 1',
      'broker_a2a_replays_total{outcome="complete"} 0',
      'broker_a2a_log_appends_total 3',
      'broker_a2a_log_events_total 4',
    ]),
  )
  expect(page).toMatch(/^broker_a2a_log_bytes_total \d{3,}$/m)
  expect(page).toMatch(/^broker_a2a_inbox_oldest_seconds\{agent_id="laptop"\} \d/m)
  await postJson(`${urls.http}/agents/deregister`, { agent_id: 'laptop' })
  expect(await (await fetch(`${urls.api}/metrics`)).text()).not.toContain('broker_a2a_inbox_waiting{')
})

test('commands - agents inbox lists inboxes and tasks, and agents cancel ends one', async () => {
  const urls = await start()
  const run = (...args: string[]) => command(args, { env: { SIGNALBOX_URL: urls.http, SIGNALBOX_API_URL: urls.api } })
  const task = await send(urls, 'm1')
  expect((await run('agents', 'inbox')).stdout).toMatch(
    /^agent id +waiting +in flight +oldest seconds\nlaptop +1 +0 +\d\n$/,
  )
  const listed = await run('agents', 'inbox', 'laptop', '--json')
  expect(JSON.parse(listed.stdout)).toMatchObject({ task_id: task, phase: 'stored', caller: 'anonymous' })
  expect(await run('agents', 'cancel', 'laptop', task)).toMatchObject({ code: 0, stdout: `${task} is over\n` })
  expect((await run('agents', 'inbox', 'laptop')).code).toBe(3)
  expect((await run('agents', 'inbox', 'laptop', '--all')).stdout).toContain(`${task}  done`)
  expect((await run('agents', 'cancel', 'laptop', 'nothing')).code).toBe(3)
  expect((await run('agents', 'inbox', 'nobody')).code).toBe(3)
  expect((await run('agents', 'inbox', '--all')).code).toBe(2)
})
