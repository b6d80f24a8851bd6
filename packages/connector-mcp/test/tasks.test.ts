import { setTimeout as pause } from 'node:timers/promises'

import type { AuthenticationRequest } from '@signalbox/http-kit'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import type { TaskStore } from '../src/index.ts'
import { brokerTaskStore } from '../src/index.ts'
import { capabilities, FAST, slowResponder, startTaskHost } from './task-host.ts'

type TaskSink = Parameters<TaskStore['follow']>[0]

const QUERY = { channel: 'ask', body: 'x', timeout_seconds: 60 }
const NO_TASKS = { 'io.modelcontextprotocol/clientCapabilities': {} }

/** Stops the clock of tasks, so many milliseconds from now. Timers run on. */
function stopTheClock(aheadMs: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + aheadMs })
  onTestFinished(() => void vi.useRealTimers())
}

describe('M19 a call becomes a task', () => {
  test('M19 - a call without an answer after the time becomes a task, and its result can be read', async () => {
    const host = await startTaskHost()
    const node = await host.node()
    const { answer } = await slowResponder(host.user)
    const task = await node.call('query_send', QUERY)
    expect(task).toEqual({
      resultType: 'task',
      taskId: expect.stringMatching(/^[\w-]{32}$/),
      status: 'working',
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      lastUpdatedAt: task.createdAt,
      ttlMs: 3_600_000,
      pollIntervalMs: 1_000,
      _meta: expect.anything(),
    })
    expect(await node.get(task.taskId)).toMatchObject({ resultType: 'complete', status: 'working' })
    answer('done')
    const { result, ...completed } = await node.until(task.taskId, 'completed')
    expect(result).toEqual({
      resultType: 'complete',
      content: [{ type: 'text', text: 'done' }],
      isError: false,
      structuredContent: { reply: 'done', metadata: '', tags: {} },
    })
    expect(Date.parse(completed.lastUpdatedAt)).toBeGreaterThanOrEqual(Date.parse(task.createdAt))
    expect(node.failures).toEqual([])
  })

  test('M19 - a call that is answered in time stays a call', async () => {
    const host = await startTaskHost()
    const node = await host.node({ afterMs: 60_000 })
    const { answer } = await slowResponder(host.user)
    answer('at once')
    expect(await node.call('query_send', QUERY)).toMatchObject({ resultType: 'complete', isError: false })
  })

  test('M19 - a client without the extension waits for its answer', async () => {
    const host = await startTaskHost()
    const node = await host.node()
    const { answer, arrived } = await slowResponder(host.user)
    const called = node.call('query_send', QUERY, { meta: NO_TASKS })
    await arrived
    setTimeout(() => answer('late'), 100)
    expect(await called).toMatchObject({ resultType: 'complete', isError: false })
  })

  test('M19 - a rejected command is a completed task with isError', async () => {
    const host = await startTaskHost()
    const node = await host.node()
    const go = Promise.withResolvers<void>()
    const subscription = await host.user.commands.subscribe('do', {}, async () => {
      await go.promise
      return { error: 'not today' }
    })
    onTestFinished(() => subscription.close())
    const { taskId } = await node.call('command_send', { channel: 'do', body: 'x', timeout_seconds: 60 })
    go.resolve()
    const { result } = await node.until(taskId, 'completed')
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('not today') }] })
  })

  test('M19 - a receive never becomes a task', async () => {
    const host = await startTaskHost()
    const node = await host.node()
    const args = { channel: 'q', max_messages: 1, wait_timeout_seconds: 1 }
    expect(await node.call('queue_receive', args)).toMatchObject({ resultType: 'complete', isError: false })
  })

  test('M19 - a client that leaves before it has the task cancels the call, and leaves no task', async () => {
    const host = await startTaskHost()
    const store = brokerTaskStore(host.system, { shared: true })
    const begun = Promise.withResolvers<string>()
    const go = Promise.withResolvers<void>()
    const node = await host.node({
      store: {
        ...store,
        shared: true,
        last: (key) => store.last(key),
        announce: (id) => store.announce(id),
        follow: (sink, signal) => store.follow(sink, signal),
        async write(key, entry, expected) {
          const sequence = await store.write(key, entry, expected)
          if (expected === 0) {
            begun.resolve(key)
            await go.promise
          }
          return sequence
        },
      },
    })
    const { arrived } = await slowResponder(host.user)
    const leave = new AbortController()
    const called = node.request('tools/call', { name: 'query_send', arguments: QUERY }, { signal: leave.signal })
    called.catch(() => {})
    const taskId = await begun.promise
    leave.abort()
    const signal = await arrived
    await expect.poll(() => signal.aborted).toBe(true)
    go.resolve()
    await expect.poll(async () => (await store.last(taskId))?.head).toBeUndefined()
  })

  test('M19 - a result that is too large is an error of the tool', async () => {
    const host = await startTaskHost()
    const node = await host.node({ maxResultBytes: 2_048 })
    const { answer } = await slowResponder(host.user)
    const { taskId } = await node.call('query_send', QUERY)
    answer('x'.repeat(4_096))
    const { result } = await node.until(taskId, 'completed')
    expect(result?.isError).toBe(true)
    expect(result?.content[0]?.text).toMatch(/^RESULT_TOO_LARGE: The result has \d+ bytes; a task stores at most 2048/)
  })
})

describe('M19 limits', () => {
  test('M19 - at the limit of a caller or of all, calls wait for their answer', async () => {
    const host = await startTaskHost()
    const limited: unknown[] = []
    const limits = { maxTasks: 2, maxTasksOf: () => 1, limited: (...args: unknown[]) => void limited.push(args) }
    const node = await host.node(limits)
    const { answer } = await slowResponder(host.user)
    const { taskId } = await node.call('query_send', QUERY)
    const second = node.call('query_send', QUERY)
    await expect.poll(() => limited.length).toBe(1)
    answer('done')
    expect(await second).toMatchObject({ resultType: 'complete', isError: false })
    expect(limited).toEqual([['caller_tasks', expect.stringMatching(/^address:/)]])
    // A task that is over counts until it expires, because it is still stored.
    await node.until(taskId, 'completed')
    await slowResponder(host.user, 'other')
    const other = await host.node({ ...limits, maxTasksOf: () => 0, maxTasks: 1 })
    const third = other.call('query_send', { channel: 'nobody', body: 'x', timeout_seconds: 1 })
    await expect.poll(() => limited.at(-1)).toEqual(['tasks', expect.anything()])
    expect(await third).toMatchObject({ resultType: 'complete', isError: true })
  })

  test('M19 - an expired task is unknown, and is removed from the store', async () => {
    const host = await startTaskHost()
    const node = await host.node({ ttlMs: 60_000 })
    const { answer } = await slowResponder(host.user)
    const { taskId } = await node.call('query_send', QUERY)
    answer('done')
    await node.until(taskId, 'completed')
    stopTheClock(61_000)
    expect((await node.ask('tasks/get', { taskId })).error?.code).toBe(-32602)
    const store = brokerTaskStore(host.system, { shared: true })
    await expect.poll(async () => (await store.last(taskId))?.head).toBeUndefined()
  })

  test('M19 - a call that still runs keeps its task', async () => {
    const host = await startTaskHost()
    const node = await host.node({ ttlMs: 10_000 })
    const { answer } = await slowResponder(host.user)
    const { taskId } = await node.call('query_send', QUERY)
    stopTheClock(20_000)
    // The node looks for expired tasks four times in each lease.
    await pause(2 * FAST.leaseMs)
    expect(await node.get(taskId)).toMatchObject({ status: 'working' })
    answer('done')
    await node.until(taskId, 'completed')
  })
})

describe('M19 access', () => {
  const NAMES = ['tasks/get', 'tasks/update', 'tasks/cancel'] as const

  test('M19 - a task of another caller is unknown', async () => {
    const host = await startTaskHost()
    const authenticator = {
      authenticate: ({ headers }: AuthenticationRequest) => ({
        clientId: headers.authorization ?? 'nobody',
      }),
    }
    const node = await host.node({}, { authenticator })
    const { answer } = await slowResponder(host.user)
    const [me, you] = ['me', 'you'].map((authorization) => ({ headers: { authorization } }))
    const { taskId } = await node.call('query_send', QUERY, me)
    for (const method of NAMES) {
      const { status, error } = await node.ask(method, { taskId, inputResponses: {} }, you)
      expect([method, status, error?.code]).toEqual([method, 200, -32602])
    }
    answer('done')
    await expect.poll(async () => (await node.get(taskId, me)).status).toBe('completed')
  })

  test('M19 - requests about unknown tasks are -32602, and those without the extension -32021', async () => {
    const host = await startTaskHost()
    const node = await host.node()
    for (const method of NAMES) {
      const params = { taskId: 'unknown', inputResponses: {} }
      const { error } = await node.ask(method, params)
      expect([method, error?.code]).toEqual([method, -32602])
      const undeclared = await node.ask(method, params, { meta: NO_TASKS })
      expect([method, undeclared.status, undeclared.error?.code]).toEqual([method, 400, -32021])
      expect(undeclared.error?.data).toEqual({
        requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } },
      })
    }
    const filter = { notifications: { taskIds: ['unknown'] } }
    const listen = await node.ask('subscriptions/listen', filter, { meta: NO_TASKS })
    expect([listen.status, listen.error?.code]).toEqual([400, -32021])
  })

  test('M19 - Mcp-Name has to be the id of the task', async () => {
    const host = await startTaskHost()
    const node = await host.node()
    const { status, error } = await node.ask('tasks/get', { taskId: 'a' }, { headers: { 'Mcp-Name': 'b' } })
    expect([status, error?.code]).toEqual([400, -32020])
  })

  test('M19 - server/discover declares the extension only with a store', async () => {
    const host = await startTaskHost()
    const node = await host.node()
    const { result } = await node.ask('server/discover', {})
    expect(result).toMatchObject({
      capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
    })
    const { status, error } = await node.ask('tasks/list', {})
    expect([status, error?.code, error?.message]).toEqual([404, -32601, expect.stringContaining('tasks/cancel')])
  })
})

describe('M19 other nodes', () => {
  test('M19 - any node reads and cancels the task, and the call of the other one ends', async () => {
    const host = await startTaskHost()
    const [one, two] = [await host.node(), await host.node()]
    const { arrived } = await slowResponder(host.user)
    const { taskId } = await one.call('query_send', QUERY)
    expect(await two.get(taskId)).toMatchObject({ status: 'working' })
    const signal = await arrived
    expect(signal.aborted).toBe(false)
    for (const node of [two, one, two]) {
      const { result } = await node.ask('tasks/cancel', { taskId })
      expect(result).toEqual({ resultType: 'complete', _meta: expect.anything() })
    }
    expect(await one.get(taskId)).toMatchObject({ status: 'cancelled' })
    await expect.poll(() => signal.aborted).toBe(true)
    expect([...one.failures, ...two.failures]).toEqual([])
  })

  test('M19 - the task of a node that stops announcing itself fails, and its late result is dropped', async () => {
    const host = await startTaskHost()
    const store = brokerTaskStore(host.system, { shared: true })
    const silent = {
      shared: true,
      write: (...args: Parameters<typeof store.write>) => store.write(...args),
      last: (key: string) => store.last(key),
      announce: () => Promise.resolve(),
      follow: (...args: Parameters<typeof store.follow>) => store.follow(...args),
    }
    const [one, two] = [await host.node({ store: silent }), await host.node()]
    const { answer, arrived } = await slowResponder(host.user)
    const { taskId } = await one.call('query_send', QUERY)
    const task = await two.until(taskId, 'failed')
    expect(task.error).toEqual({ code: -32603, message: expect.stringContaining('may have run') })
    expect(task.statusMessage).toBe(task.error?.message)
    // The first node sees that it has lost the task, and ends its call.
    await expect.poll(async () => (await arrived).aborted).toBe(true)
    answer('late')
    expect(await one.get(taskId)).toMatchObject({ status: 'failed' })
  })

  test('M19 - a node that announces itself keeps its task for longer than a lease', async () => {
    const host = await startTaskHost()
    const [one, two] = [await host.node(), await host.node()]
    const { answer } = await slowResponder(host.user)
    const { taskId, createdAt } = await one.call('query_send', QUERY)
    await expect.poll(() => Date.now() - Date.parse(createdAt), { timeout: 20_000 }).toBeGreaterThan(1_200)
    expect(await two.get(taskId)).toMatchObject({ status: 'working' })
    answer('done')
    await two.until(taskId, 'completed')
  })
})

test('M19 - a shutdown stores the outcome of the calls that it ends', async () => {
  const host = await startTaskHost()
  const [one, two] = [await host.node(), await host.node()]
  await slowResponder(host.user)
  const { taskId } = await one.call('query_send', QUERY, { meta: capabilities() })
  await one.close()
  const { result } = await two.until(taskId, 'completed')
  expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/^CANCELLED: /) }] })
})

test('M19 - a call that waits while the node reads the stored tasks becomes a task when they are read', async () => {
  const host = await startTaskHost()
  const store = brokerTaskStore(host.system, { shared: true })
  const followed = Promise.withResolvers<TaskSink>()
  const node = await host.node({
    store: {
      shared: true,
      write: (key, entry, expected) => store.write(key, entry, expected),
      last: (key) => store.last(key),
      announce: (id) => store.announce(id),
      follow(sink, signal) {
        followed.resolve(sink)
        return store.follow(sink, signal)
      },
    },
  })
  const sink = await followed.promise
  sink.restart()
  const { arrived } = await slowResponder(host.user)
  const called = node.call('query_send', { channel: 'ask', body: 'x', timeout_seconds: 60 })
  await arrived
  // Longer than the 20 ms after which calls become tasks here.
  await pause(200)
  sink.current()
  expect(await called).toMatchObject({ resultType: 'task', status: 'working' })
})
