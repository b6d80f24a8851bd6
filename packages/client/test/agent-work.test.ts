import { until } from '@signalbox/testkit/until'
import { expect, test, vi } from 'vitest'

import type { AgentHandler, AgentReply, AgentWorkOptions, Signalbox, WorkerPool } from '../src/index.ts'
import { connect, Reject } from '../src/index.ts'
import { Gate } from './gate.ts'
import { serverForFile } from './server.ts'

vi.setConfig({ testTimeout: 60_000 })

const file = serverForFile({ onError: () => {} })
const { client } = file

/** Registers a pull agent that works with a handler, and resolves when it can be called. */
async function working(
  sb: Signalbox,
  id: string,
  handler: AgentHandler,
  options: AgentWorkOptions = {},
): Promise<WorkerPool> {
  const pool = sb.agents.work(id, handler, { card: {}, lease: '10s', ...options })
  await until(async () => (await sb.agents.list()).some((card) => card['agent_id'] === id))
  return pool
}

function statusEvent(state: string): { statusUpdate: object } {
  return { statusUpdate: { status: { state: `TASK_STATE_${state}` } } }
}

async function streamed(sb: Signalbox, id: string, message = 'go'): Promise<readonly AgentReply[]> {
  const replies: AgentReply[] = []
  for await (const reply of sb.agents(id).stream(message)) replies.push(reply)
  return replies
}

/** Sends a message, and returns the task before it is worked on. */
async function submitted(sb: Signalbox, id: string, text = 'go', more: object = {}): Promise<string> {
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] }
  const result = await sb
    .agents(id)
    .call('SendMessage', { message, configuration: { returnImmediately: true }, ...more })
  return (result['task'] as { id: string }).id
}

async function taskOf(
  sb: Signalbox,
  id: string,
  task: string,
): Promise<{ status: { state: string; message?: object } }> {
  return (await sb.agents(id).call('GetTask', { id: task })) as { status: { state: string } }
}

async function ended(sb: Signalbox, id: string, task: string, state: string) {
  await expect
    .poll(async () => (await taskOf(sb, id, task)).status.state, { timeout: 40_000 })
    .toBe(`TASK_STATE_${state}`)
  return taskOf(sb, id, task)
}

test('agent work - a text that the handler returns is the artifact of the completed task', async () => {
  const sb = client()
  const pool = await working(sb, 'upper', ({ text, attempt, callerId, taskId, contextId, request, headers }) => {
    expect([attempt, callerId]).toEqual([1, 'anonymous'])
    expect(request).toMatchObject({ message: { taskId, contextId, parts: [{ text }] } })
    expect(headers['x-mine']).toBeUndefined()
    return text.toUpperCase()
  })
  expect(await sb.agents('upper').send('hello')).toMatchObject({ text: 'HELLO', state: 'completed' })
  await pool.close()
  expect(await sb.agents('upper').card()).toMatchObject({ name: 'upper', a2a: { pull: true } })
})

test('agent work - a message or a task that the handler returns ends the task', async () => {
  const sb = client()
  await working(sb, 'objects', ({ text }) =>
    text === 'message'
      ? { parts: [{ text: 'said' }] }
      : {
          status: {
            state: 'TASK_STATE_INPUT_REQUIRED',
            message: { messageId: 'q', role: 'ROLE_AGENT', parts: [{ text: 'why?' }] },
          },
        },
  )
  expect(await sb.agents('objects').send('message')).toMatchObject({ text: 'said', state: 'completed' })
  expect(await sb.agents('objects').send('task')).toMatchObject({ text: 'why?', state: 'input-required' })
})

test('agent work - a generator streams its texts and events, and the next message continues the task', async () => {
  const sb = client()
  await working(sb, 'talker', async function* ({ text }) {
    yield statusEvent('WORKING')
    for (const word of ['one', ' two']) yield word
    if (text === 'go') yield { statusUpdate: { status: { state: 'TASK_STATE_INPUT_REQUIRED' } } }
    expect(text).toBe('more')
    return ' three'
  })
  const first = await streamed(sb, 'talker')
  expect(first.map(({ text, state }) => state ?? text)).toEqual([
    'submitted',
    'working',
    'one',
    ' two',
    'input-required',
  ])
  const { taskId } = first[0] ?? {}
  const next = await sb.agents('talker').send('more', { taskId })
  expect(next).toMatchObject({ taskId, state: 'completed' })
  expect(next.text).toBe('one\n two\none\n two\n three')
})

test('agent work - many events are sent in batches, complete and in order', async () => {
  let calls = 0
  const sb = client({
    fetch: (url, init) => {
      if (url.endsWith('/inbox/events')) calls++
      return fetch(url, init)
    },
  })
  await working(sb, 'flood', async function* () {
    for (let n = 0; n < 500; n++) yield `${n} `
  })
  const texts = (await streamed(sb, 'flood')).flatMap(({ text, state }) => (state === undefined ? text : []))
  expect(texts).toEqual(Array.from({ length: 500 }, (_, n) => `${n} `))
  expect(calls).toBeLessThan(50)
})

test('agent work - events whose answers are lost are sent again, and appear once', async () => {
  let calls = 0
  const sb = client({
    retries: 0,
    fetch: async (url, init) => {
      const response = await fetch(url, init)
      if (url.endsWith('/inbox/events') && ++calls % 2 === 1) throw new TypeError('the connection broke')
      return response
    },
  })
  await working(sb, 'repeating', async function* () {
    for (let n = 0; n < 20; n++) {
      yield `${n} `
      // On a busy machine, one call could take all events.
      if (n < 5) await until(() => calls > n)
    }
  })
  const texts = (await streamed(sb, 'repeating')).flatMap(({ text, state }) => (state === undefined ? text : []))
  expect(texts).toEqual(Array.from({ length: 20 }, (_, n) => `${n} `))
  expect(calls).toBeGreaterThan(4)
})

test('agent work - a canceled task aborts the signal, and ends as canceled', async () => {
  const sb = client()
  const started = new Gate()
  let reason: unknown
  await working(sb, 'stoppable', async ({ signal }) => {
    started.open()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    reason = signal.reason
    throw reason
  })
  const task = await submitted(sb, 'stoppable')
  await started.opened
  await sb.agents('stoppable').call('CancelTask', { id: task })
  await ended(sb, 'stoppable', task, 'CANCELED')
  expect(reason).toMatchObject({ code: 'CANCELED' })
})

test('agent work - the lease is renewed while the handler runs', async () => {
  const sb = client()
  let attempts = 0
  await working(sb, 'slow', async () => {
    attempts++
    await new Promise((resolve) => setTimeout(resolve, 13_000))
    return 'late'
  })
  expect(await sb.agents('slow').send('go')).toMatchObject({ text: 'late', state: 'completed' })
  expect(attempts).toBe(1)
})

test('agent work - a handler that fails before its first event gets the request again', async () => {
  const errors: unknown[] = []
  const sb = client({ onError: (error) => errors.push(error) })
  await working(
    sb,
    'flaky',
    ({ attempt }) => {
      if (attempt < 3) throw new Error(`attempt ${attempt}`)
      return 'done'
    },
    { backoff: () => 0 },
  )
  expect(await sb.agents('flaky').send('go')).toMatchObject({ text: 'done', state: 'completed' })
  expect(errors).toEqual([new Error('attempt 1'), new Error('attempt 2')])
})

test('agent work - a handler that fails after an event fails the task, without the text of the error', async () => {
  const sb = client()
  await working(sb, 'breaking', async function* ({ text }) {
    yield 'part'
    throw text === 'reject' ? new Reject('no paper') : new Error('secret')
  })
  expect(await sb.agents('breaking').send('go')).toMatchObject({ text: 'part\nthe agent failed', state: 'failed' })
  expect(await sb.agents('breaking').send('reject')).toMatchObject({ text: 'part\nno paper', state: 'failed' })
})

test('agent work - a Reject fails the task with its reason at once', async () => {
  const sb = client()
  let attempts = 0
  await working(sb, 'refusing', () => {
    attempts++
    throw new Reject('not today')
  })
  expect(await sb.agents('refusing').send('go')).toMatchObject({ text: 'not today', state: 'failed' })
  expect(attempts).toBe(1)
})

test('agent work - an event that the server refuses fails the task, and aborts the handler', async () => {
  const errors: unknown[] = []
  const sb = client({ onError: (error) => errors.push(error) })
  let reason: unknown
  await working(sb, 'sloppy', async function* ({ signal }) {
    yield statusEvent('WORKING')
    yield { statusUpdate: { taskId: 'another', status: { state: 'TASK_STATE_WORKING' } } }
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    reason = signal.reason
    yield 'unseen'
  })
  expect(await sb.agents('sloppy').send('go')).toMatchObject({ text: 'the agent failed', state: 'failed' })
  expect(reason).toMatchObject({ code: 'EVENT_INVALID' })
  expect(errors).toEqual([reason])
})

test('agent work - a lost lease aborts the handler, and the request is delivered again', async () => {
  const errors: unknown[] = []
  let isBlocked = true
  const sb = client({
    onError: (error) => errors.push(error),
    // The server gets no renewal of the first delivery.
    fetch: async (url, init) => {
      if (url.endsWith('/inbox/events') && isBlocked) throw new TypeError('the network is down')
      return fetch(url, init)
    },
  })
  const reasons: unknown[] = []
  await working(sb, 'unrenewed', async ({ attempt, signal }) => {
    if (attempt > 1) return `attempt ${attempt}`
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    reasons.push(signal.reason)
    isBlocked = false
    throw signal.reason
  })
  expect(await sb.agents('unrenewed').send('go')).toMatchObject({ text: 'attempt 2', state: 'completed' })
  expect(reasons).toMatchObject([{ code: 'LEASE_LOST' }])
  expect(errors.filter((error) => error === reasons[0])).toHaveLength(1)
})

test('agent work - several requests are worked on at the same time', async () => {
  const sb = client()
  const gate = new Gate()
  let running = 0
  const pool = await working(
    sb,
    'parallel',
    async () => {
      if (++running === 3) gate.open()
      await gate.opened
      return 'ok'
    },
    { concurrency: 3 },
  )
  const replies = await Promise.all([1, 2, 3].map((n) => sb.agents('parallel').send(`${n}`)))
  expect(replies.map(({ state }) => state)).toEqual(['completed', 'completed', 'completed'])
  await until(() => pool.active === 0)
})

test('agent work - a closing client waits for its handlers, and later requests wait in the inbox', async () => {
  const owner = connect(file.server.url)
  const gate = new Gate()
  const started = new Gate()
  await working(owner, 'closing', async () => {
    started.open()
    await gate.opened
    return 'finished'
  })
  const sb = client()
  const task = await submitted(sb, 'closing')
  await started.opened
  const closed = owner.close()
  gate.open()
  await closed
  await ended(sb, 'closing', task, 'COMPLETED')
  const next = await submitted(sb, 'closing')
  expect((await taskOf(sb, 'closing', next)).status.state).toBe('TASK_STATE_SUBMITTED')
})

test('agent work - a drain that runs out of time aborts the handlers and returns their requests', async () => {
  const sb = client()
  const started = new Gate()
  let reason: unknown
  const pool = await working(sb, 'stuck', async ({ signal }) => {
    signal.addEventListener('abort', () => (reason = signal.reason))
    started.open()
    await new Promise(() => {})
  })
  const task = await submitted(sb, 'stuck')
  await started.opened
  expect(await pool.drain('10ms')).toBe(1)
  expect(reason).toMatchObject({ code: 'CLOSED' })
  await working(sb, 'stuck', ({ attempt }) => `attempt ${attempt}`)
  await ended(sb, 'stuck', task, 'COMPLETED')
})

test('agent work - an error that no attempt cures ends the pool', async () => {
  const sb = client()
  await expect(sb.agents.work('nobody', () => 'x').closed).rejects.toMatchObject({ code: 'AGENT_NOT_FOUND' })
  await expect(sb.agents.work('no inbox!', () => 'x', { card: {} }).closed).rejects.toMatchObject({
    code: 'CARD_INVALID',
  })
  expect(() => sb.agents.work('short', () => 'x', { lease: '9s' })).toThrow(
    /lease is "9s"; it must be 10 to 3600 seconds/,
  )
})

test('agent work - workers continue when the server restarts in the middle of a request', async () => {
  const sb = client()
  const started = new Gate()
  const gate = new Gate()
  await working(
    sb,
    'survivor',
    async function* () {
      yield statusEvent('WORKING')
      started.open()
      await gate.opened
      return 'after the restart'
    },
    { concurrency: 2 },
  )
  const task = await submitted(sb, 'survivor')
  await started.opened
  await file.server.stop('SIGTERM')
  await file.server.start()
  gate.open()
  expect(await ended(sb, 'survivor', task, 'COMPLETED')).toMatchObject({
    artifacts: [{ parts: [{ text: 'after the restart' }] }],
  })
})
