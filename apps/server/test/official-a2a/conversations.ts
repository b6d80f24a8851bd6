import { setTimeout as delay } from 'node:timers/promises'

import type { OfficialAgents } from './agents/process.ts'
import type { Content } from './agents/script.ts'
import { UNWANTED } from './agents/script.ts'
import type { OfficialClient, Outgoing, Result } from './clients/client.ts'
import { outcome } from './view.ts'

/** What a client sees of one method or one situation. Its result is compared with that of another way to the agent. */
export interface Conversation {
  readonly name: string
  /** Needs an agent that streams. */
  readonly streams?: true
  /** Has a stream that the agent refuses. */
  readonly refusedStream?: true
  /** Has a stream that ends because the agent asks for input. */
  readonly asksInStream?: true
  /** Subscribes to tasks that have no news. */
  readonly subscribes?: true
  /** Subscribes to a task that has ended. */
  readonly subscribesLate?: true
  /** Asks for push notifications. */
  readonly pushes?: true
  /** Lists tasks. */
  readonly lists?: true
  /** Has a stream of an agent that fails before its first event. */
  readonly failsInStream?: true
  /** Shows the extended card. */
  readonly extendedCard?: true
  readonly hold: (client: OfficialClient, agents: OfficialAgents) => Promise<unknown>
}

const say = (text: string, rest: Partial<Outgoing> = {}): Outgoing => ({ parts: [{ text }], ...rest })

const view = async (call: Promise<Result>): Promise<unknown> => outcome(call.then(({ view }) => view))

/** The events of a stream, and its error if it ends with one. */
async function all(stream: AsyncIterable<Result>): Promise<readonly unknown[]> {
  const events: unknown[] = []
  const end = await outcome(
    (async () => {
      for await (const { view } of stream) events.push(view)
      return 'end'
    })(),
  )
  return [...events, end]
}

/** Reads a stream until its task works; resolves with the events so far, and the rest of the stream. */
async function untilWorking(stream: AsyncIterable<Result>) {
  const iterator = stream[Symbol.asyncIterator]()
  const first = await iterator.next()
  const second = await iterator.next()
  if (first.done === true || second.done === true) throw new Error('the stream ended before the task worked')
  const rest: AsyncIterable<Result> = { [Symbol.asyncIterator]: () => iterator }
  return { taskId: first.value.taskId, seen: [first.value.view, second.value.view], rest }
}

const EVERYTHING: readonly Content[] = [
  { text: 'echo' },
  { bytes: 'AAECw6Q=', name: 'bytes.bin', mediaType: 'application/octet-stream' },
  { uri: 'https://files.example/a.pdf', name: 'a.pdf', mediaType: 'application/pdf' },
  { data: { list: [1, { deep: 'ä' }], empty: {} } },
]

const HOOK = { id: 'hook', url: 'http://127.0.0.1:9/news', token: 'a-token' }
const SIGNED_HOOK = { ...HOOK, id: 'signed', authentication: { scheme: 'Bearer', credentials: 'secret' } }

/** Every method of the protocol, and how it fails. */
export const CONVERSATIONS: readonly Conversation[] = [
  { name: 'send: a message', hold: (client) => view(client.send(say('message'))) },
  { name: 'send: a task with status and artifact', hold: (client) => view(client.send(say('work'))) },
  { name: 'send: files and data come back', hold: (client) => view(client.send(say('files'))) },
  {
    name: 'send: files, data, metadata and extensions arrive',
    hold: (client) =>
      view(client.send({ parts: EVERYTHING, metadata: { trace: [1, 'x'] }, extensions: ['https://ext.example/a'] })),
  },
  { name: 'send: a task that is rejected', hold: (client) => view(client.send(say('reject'))) },
  { name: 'send: an agent that fails', hold: (client) => view(client.send(say('fail'))) },
  { name: 'send: an agent that takes its time', hold: (client) => view(client.send(say('late'))) },
  {
    name: 'send: a follow-up to a task that asks for input',
    hold: async (client) => {
      const asked = await client.send(say('ask'))
      return [asked.view, await view(client.send(say('the red one', { taskId: asked.taskId })))]
    },
  },
  {
    name: 'send: a message in a context of its own choice, with references',
    hold: async (client) => {
      const { taskId } = await client.send(say('work'))
      const contextId = '00000000-1111-2222-3333-444444444444'
      return view(client.send(say('work', { contextId, referenceTaskIds: [taskId] })))
    },
  },
  {
    name: 'send: without waiting, then get',
    hold: async (client, agents) => {
      const { taskId, view: first } = await client.send(say('hold', { immediately: true }))
      await agents.release(taskId)
      return [first, await until(client, taskId, /completed/i)]
    },
  },
  {
    name: 'send: with a push configuration',
    pushes: true,
    hold: async (client) => {
      const { taskId } = await client.send(say('ask', { push: SIGNED_HOOK }))
      return outcome(client.listPush(taskId))
    },
  },
  {
    name: 'send: refused for its content type',
    refusedStream: true,
    hold: async (client) => [await view(client.send(say(UNWANTED))), await all(client.stream(say(UNWANTED)))],
  },
  {
    name: 'send: a follow-up to a finished task and to no task',
    hold: async (client) => {
      const { taskId } = await client.send(say('work'))
      return [
        await view(client.send(say('work', { taskId }))),
        await view(client.send(say('work', { taskId: crypto.randomUUID() }))),
      ]
    },
  },
  { name: 'stream: a message', hold: (client) => all(client.stream(say('message'))) },
  { name: 'stream: a task with status and artifact', hold: (client) => all(client.stream(say('work'))) },
  { name: 'stream: files and data', hold: (client) => all(client.stream(say('files'))) },
  { name: 'stream: many chunks', hold: (client) => all(client.stream(say('many'))) },
  { name: 'stream: a task that is rejected', hold: (client) => all(client.stream(say('reject'))) },
  { name: 'stream: an agent that fails', failsInStream: true, hold: (client) => all(client.stream(say('fail'))) },
  {
    name: 'stream: a follow-up to a task that asks for input',
    asksInStream: true,
    hold: async (client) => {
      let taskId = ''
      const first: unknown[] = []
      for await (const event of client.stream(say('ask'))) {
        taskId = event.taskId
        first.push(event.view)
      }
      return [first, await all(client.stream(say('the red one', { taskId })))]
    },
  },
  {
    name: 'stream: a follow-up to no task',
    refusedStream: true,
    hold: (client) => all(client.stream(say('work', { taskId: crypto.randomUUID() }))),
  },
  {
    name: 'get: with and without history',
    hold: async (client) => {
      const { taskId } = await client.send(say('work'))
      return [await view(client.get(taskId, 5)), await view(client.get(taskId, 0))]
    },
  },
  { name: 'get: no such task', hold: (client) => view(client.get(crypto.randomUUID())) },
  {
    name: 'list: the tasks of a context',
    lists: true,
    hold: async (client) => {
      const contextId = crypto.randomUUID()
      await client.send(say('work', { contextId }))
      // The SDK sorts tasks by the time of their last change, in whole milliseconds.
      await delay(5)
      await client.send(say('reject', { contextId }))
      return outcome(client.list(contextId))
    },
  },
  {
    name: 'cancel: a task that works, with a stream open',
    streams: true,
    hold: async (client) => {
      const { taskId, seen, rest } = await untilWorking(client.stream(say('hold')))
      const [canceled, events] = await Promise.all([view(client.cancel(taskId)), all(rest)])
      return [canceled, seen, events, await view(client.get(taskId))]
    },
  },
  {
    name: 'cancel: a finished task and no task',
    hold: async (client) => {
      const { taskId } = await client.send(say('work'))
      return [await view(client.cancel(taskId)), await view(client.cancel(crypto.randomUUID()))]
    },
  },
  {
    name: 'resubscribe: to the end of the task',
    streams: true,
    hold: async (client, agents) => {
      const { taskId } = await client.send(say('hold', { immediately: true }))
      await until(client, taskId, /working/i)
      const iterator = client.resubscribe(taskId)[Symbol.asyncIterator]()
      const first = await iterator.next()
      const rest = all({ [Symbol.asyncIterator]: () => iterator })
      await agents.release(taskId)
      return [first.value?.view, await rest]
    },
  },
  {
    name: 'resubscribe: after the stream was left, which cancels nothing',
    streams: true,
    hold: async (client, agents) => {
      const leaving = new AbortController()
      const { taskId, seen } = await untilWorking(client.stream(say('hold'), leaving.signal))
      leaving.abort()
      const iterator = client.resubscribe(taskId)[Symbol.asyncIterator]()
      const first = await iterator.next()
      const rest = all({ [Symbol.asyncIterator]: () => iterator })
      await agents.release(taskId)
      return [seen, first.value?.view, await rest]
    },
  },
  {
    name: 'resubscribe: to a finished task and to no task',
    subscribes: true,
    subscribesLate: true,
    hold: async (client) => {
      const { taskId } = await client.send(say('work'))
      return [await all(client.resubscribe(taskId)), await all(client.resubscribe(crypto.randomUUID()))]
    },
  },
  {
    name: 'push: set, get, list, delete',
    pushes: true,
    hold: async (client) => {
      const { taskId } = await client.send(say('ask'))
      return [
        await outcome(client.setPush(taskId, HOOK)),
        await outcome(client.setPush(taskId, SIGNED_HOOK)),
        await outcome(client.getPush(taskId, 'signed')),
        await outcome(client.listPush(taskId)),
        await outcome(client.deletePush(taskId, 'hook')),
        await outcome(client.listPush(taskId)),
        await outcome(client.getPush(taskId, 'hook')),
      ]
    },
  },
  {
    name: 'push: of no task',
    pushes: true,
    hold: async (client) => [
      await outcome(client.setPush(crypto.randomUUID(), HOOK)),
      await outcome(client.listPush(crypto.randomUUID())),
    ],
  },
  { name: 'card: the extended one', extendedCard: true, hold: (client) => outcome(client.skills()) },
]

/** Gets a task until its state matches. */
async function until(client: OfficialClient, taskId: string, state: RegExp): Promise<unknown> {
  for (;;) {
    const { view } = await client.get(taskId)
    const { status } = view as { status: { state: string } }
    if (state.test(status.state)) return view
  }
}
