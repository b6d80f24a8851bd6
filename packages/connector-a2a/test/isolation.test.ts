import { createHash } from 'node:crypto'

import type { Authenticator, Identity } from '@signalbox/http-kit'
import { AuthenticationError } from '@signalbox/http-kit'
import { afterEach, expect, test, vi } from 'vitest'

import { taskRequest } from '../src/subscriber/isolation/task-isolation.ts'
import { TaskRecords } from '../src/subscriber/isolation/task-records.ts'
import type { Script } from './agents.ts'
import { json, result, startAgent } from './agents.ts'
import type { GatewayHost, HostOptions } from './gateway-host.ts'
import { openGateway } from './gateway-host.ts'

const CHANNEL = '_AGENTS_.runs'
const DAY_MS = 86_400_000

/** Takes the ClientID itself for its token. */
const named: Authenticator = {
  authenticate({ headers: { authorization } }): Identity {
    if (authorization === undefined) throw new AuthenticationError('no token')
    return { clientId: authorization }
  },
}

const keyOf = (taskId: string): string => `t/${createHash('sha256').update(`agent-1 ${taskId}`).digest('hex')}`

async function openWith(script: Script, options: HostOptions = { authenticator: named }) {
  const host = await openGateway(options)
  const agent = await startAgent(script)
  await host.register('agent-1', agent.url)
  return { host, agent }
}

function post(host: GatewayHost, clientId: string, method: string, params: object): Promise<Response> {
  return fetch(`${host.base}/a2a/agent-1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: clientId },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
}

const encoded = (value: object): Uint8Array => Buffer.from(JSON.stringify(value))

afterEach(() => void vi.useRealTimers())

test.each([
  [{ method: 'GetTask', params: { id: 't' } }, 'read', ['t']],
  [{ method: 'GetTask', params: { id: 'a', ID: 'b', Id: 'b', task_id: 'c' } }, 'read', ['c', 'a', 'b']],
  [{ method: 'SendMessage', params: { message: { task_id: 'a', taskId: 'b' }, id: 'x' } }, 'begin', ['a', 'b']],
  [{ method: 'SendMessage', params: { message: { referenceTaskIds: ['a', 7] } } }, 'begin', ['a']],
  [{ method: 'tasks/pushNotificationConfig/get', params: { id: 't', pushNotificationConfigId: 'p' } }, 'read', ['t']],
  [{ method: 'GetTaskPushNotificationConfig', params: { taskId: 't', id: 'p' } }, 'read', ['t']],
  [{ method: 'DeleteTaskPushNotificationConfig', params: { taskId: 't', id: 'p' } }, 'other', ['t']],
  [{ method: 'tasks/custom', params: { id: 't' } }, 'other', ['t']],
  [{ method: 'ListTasks', params: { contextId: 'c' } }, 'list', []],
  [{ method: 'custom', params: { id: 't' } }, 'other', []],
  [{ method: 'GetTask', params: { id: 'a' }, Params: { id: 'b' } }, 'read', ['a', 'b']],
  [{ method: 'tasks/send', params: { id: 't' } }, 'begin', ['t']],
  [{ method: 'message/stream' }, 'begin', []],
] as const)('A40 - isolation: the tasks of a request are found as any agent may read it: %j', (body, kind, taskIds) => {
  expect(taskRequest(encoded(body))).toEqual({ kind, taskIds })
})

test('A40 - isolation: a name that is written with escapes is the same name', () => {
  const body = String.raw`{"method":"tasks\/get","params":{"\u0069d":"t"}}`
  expect(taskRequest(Buffer.from(body))).toEqual({ kind: 'read', taskIds: ['t'] })
})

test('A40 - isolation: the record of a task is durable before its first event, however the events arrive', async () => {
  const long = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    result: { metadata: 'x'.repeat(100_000), kind: 'task', id: 'täsk', contextId: 'c', status: { state: 'working' } },
  })
  const { host } = await openWith(async (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const bytes = Buffer.from(`: hello\r\n\r\ndata: ${long}\r\n\r\ndata: ${long}\n\n`)
    for (let at = 0; at < bytes.length; at += 30_011) response.write(bytes.subarray(at, at + 30_011))
    response.end()
  })
  const response = await post(host, 'alice', 'message/stream', {})
  let text = ''
  let recordAtFirstEvent: unknown
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (text.includes('täsk')) recordAtFirstEvent ??= await host.system.eventsStore.getLast(CHANNEL, keyOf('täsk'))
  }
  expect(recordAtFirstEvent).toMatchObject({ body: new TextEncoder().encode('alice') })
  expect(text.split('"id":"täsk"')).toHaveLength(3)
  expect(await (await post(host, 'bob', 'tasks/get', { id: 'täsk' })).json()).toMatchObject({ error: { code: -32001 } })
})

test('A40 - isolation: without authentication, or with off, nothing is recorded and callers share their tasks', async () => {
  const task = result('{"kind":"task","id":"t","status":{"state":"completed"}}')
  for (const options of [{}, { authenticator: named, taskIsolation: 'off' }] satisfies HostOptions[]) {
    const { host } = await openWith(task, options)
    await (await post(host, 'alice', 'message/send', {})).text()
    expect(await (await post(host, 'bob', 'tasks/get', { id: 't' })).json()).toMatchObject({ result: { id: 't' } })
    expect(await host.system.eventsStore.getLast(CHANNEL, keyOf('t'))).toBeUndefined()
  }
})

test('A40 - isolation: a task belongs to the caller that started it, even if another caller receives its id', async () => {
  const { host, agent } = await openWith(result('{"kind":"task","id":"t","status":{"state":"completed"}}'))
  for (const clientId of ['alice', 'bob']) await (await post(host, clientId, 'message/send', {})).text()
  const get = async (clientId: string): Promise<unknown> =>
    (await post(host, clientId, 'tasks/get', { id: 't' })).json()
  expect(await get('alice')).toMatchObject({ result: { id: 't' } })
  expect(await get('bob')).toMatchObject({ error: { code: -32001, message: 'Task not found: t' } })
  expect(await get('owner')).toMatchObject({ result: { id: 't' } })
  expect(agent.asked.filter(({ body }) => body.includes('tasks/get'))).toHaveLength(2)
})

test('A40 - isolation: a list without tasks of others passes byte for byte', async () => {
  const list = '{"tasks":[{"id":"t", "n":1.0}],"totalSize":1,"pageSize":50}'
  const { host } = await openWith((_asked, response) => json(response, `{"jsonrpc":"2.0","id":1,"result":${list}}`))
  expect(await (await post(host, 'alice', 'ListTasks', {})).text()).toBe(`{"jsonrpc":"2.0","id":1,"result":${list}}`)
})

test('A40 - isolation: a record stays a week after the last use of its task', async () => {
  const { host } = await openWith(result('{}'))
  const records = new TaskRecords(host.system)
  const sequence = async (): Promise<number | undefined> =>
    (await host.system.eventsStore.getLast(CHANNEL, keyOf('t')))?.sequence
  await records.add('agent-1', 't', 'alice')
  await records.add('agent-1', 't', 'bob')
  expect([await records.callerOf('agent-1', 't'), await sequence()]).toEqual(['alice', 1])
  const now = Date.now()
  vi.useFakeTimers({ toFake: ['Date'], now: now + 1.1 * DAY_MS })
  // A node that has no record in memory.
  expect([await new TaskRecords(host.system).callerOf('agent-1', 't'), await sequence()]).toEqual(['alice', 2])
  // The record that this node has in memory is not the last.
  expect([await records.callerOf('agent-1', 't'), await sequence()]).toEqual(['alice', 2])
})
