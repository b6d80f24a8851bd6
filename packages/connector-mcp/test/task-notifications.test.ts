import { describe, expect, test } from 'vitest'

import type { Task, TaskNode } from './task-host.ts'
import { capabilities, slowResponder, startTaskHost } from './task-host.ts'

interface Message {
  readonly method?: string
  readonly id?: unknown
  readonly params?: Partial<Task> & { readonly notifications?: object; readonly _meta?: object }
  readonly result?: object
}

/** The messages of a `subscriptions/listen`, one after another. */
class Listener {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  #text = ''

  private constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader()
  }

  static async open(node: TaskNode, taskIds: readonly string[], signal?: AbortSignal): Promise<Listener> {
    const response = await node.request(
      'subscriptions/listen',
      { notifications: { taskIds } },
      signal ? { signal } : {},
    )
    if (!response.ok || response.body === null) throw new Error(await response.text())
    return new Listener(response.body)
  }

  /** Resolves with the next message; `undefined` when the stream has ended. */
  async next(): Promise<Message | undefined> {
    for (;;) {
      const [, data = ''] = /^data: (.*)\n\n/m.exec(this.#text) ?? []
      if (data !== '') {
        this.#text = this.#text.slice(this.#text.indexOf(data) + data.length)
        return JSON.parse(data) as Message
      }
      const { done, value } = await this.#reader.read()
      if (done) return undefined
      this.#text += new TextDecoder().decode(value)
    }
  }
}

const QUERY = { channel: 'ask', body: 'x', timeout_seconds: 60 }
const SUBSCRIPTION = { 'io.modelcontextprotocol/subscriptionId': 1 }

describe('M19 notifications', () => {
  test('M19 - the stream has the state of each task, then each change, and ends when all are over', async () => {
    const host = await startTaskHost()
    const [one, two] = [await host.node(), await host.node()]
    const [first, second] = [await slowResponder(host.user), await slowResponder(host.user, 'other')]
    const a = await one.call('query_send', QUERY)
    const b = await one.call('query_send', { ...QUERY, channel: 'other' })
    // A change of a task is sent by every node.
    const listener = await Listener.open(two, [a.taskId, 'unknown', b.taskId])
    expect(await listener.next()).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: { taskIds: [a.taskId, b.taskId] }, _meta: SUBSCRIPTION },
    })
    const states = [await listener.next(), await listener.next()]
    expect(states.map((message) => [message?.method, message?.params?.status])).toEqual([
      ['notifications/tasks', 'working'],
      ['notifications/tasks', 'working'],
    ])
    first.answer('done')
    const { params } = (await listener.next()) ?? {}
    const { resultType: _type, ...task } = await two.get(a.taskId)
    expect(params).toEqual({ ...task, _meta: SUBSCRIPTION })
    expect(params?.result).toMatchObject({ content: [{ text: 'done' }] })
    await one.ask('tasks/cancel', { taskId: b.taskId })
    expect(await listener.next()).toMatchObject({ params: { taskId: b.taskId, status: 'cancelled' } })
    expect(await listener.next()).toMatchObject({ id: 1, result: { resultType: 'complete', _meta: SUBSCRIPTION } })
    expect(await listener.next()).toBeUndefined()
    second.answer('late')
    expect([...one.failures, ...two.failures]).toEqual([])
  })

  test('M19 - without a task of the caller the stream ends at once', async () => {
    const host = await startTaskHost()
    const node = await host.node()
    const listener = await Listener.open(node, ['unknown'])
    expect(await listener.next()).toMatchObject({ params: { notifications: { taskIds: [] } } })
    expect(await listener.next()).toMatchObject({ id: 1, result: { resultType: 'complete' } })
    expect(await listener.next()).toBeUndefined()
  })

  test('M19 - a shutdown completes the stream', async () => {
    const host = await startTaskHost()
    const node = await host.node()
    await slowResponder(host.user)
    const { taskId } = await node.call('query_send', QUERY)
    const listener = await Listener.open(node, [taskId])
    await listener.next()
    await listener.next()
    const closed = node.close()
    expect(await listener.next()).toMatchObject({ id: 1, result: { resultType: 'complete' } })
    await closed
  })

  test('M19 - a client that leaves the stream frees its place', async () => {
    const host = await startTaskHost()
    const node = await host.node({}, { maxStreams: 1 })
    await slowResponder(host.user)
    const { taskId } = await node.call('query_send', QUERY)
    const leave = new AbortController()
    const listener = await Listener.open(node, [taskId], leave.signal)
    await listener.next()
    const filter = { notifications: { taskIds: [taskId] } }
    expect((await node.ask('subscriptions/listen', filter)).status).toBe(503)
    leave.abort()
    await expect.poll(async () => (await node.request('subscriptions/listen', filter)).status).toBe(200)
  })

  test('M19 - a filter that is not a list of task ids is -32602', async () => {
    const host = await startTaskHost()
    const node = await host.node()
    for (const taskIds of ['a', [1], {}, Array.from({ length: 101 }, (_, n) => String(n))]) {
      const { error } = await node.ask('subscriptions/listen', { notifications: { taskIds } })
      expect(error?.code).toBe(-32602)
    }
    const listen = await node.ask(
      'subscriptions/listen',
      { notifications: { taskIds: ['a'] } },
      {
        meta: { ...capabilities(), 'io.modelcontextprotocol/clientCapabilities': {} },
      },
    )
    expect(listen.error?.code).toBe(-32021)
  })
})
