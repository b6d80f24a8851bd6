import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { TaskOwners } from '../src/subscriber/instances/instance-calls.ts'
import type { Script, ScriptedAgent } from './agents.ts'
import { hang, json, startAgent } from './agents.ts'
import type { GatewayHost } from './gateway-host.ts'
import { openGateway } from './gateway-host.ts'
import { StreamClient } from './stream/client.ts'

const OWNER = { clientId: 'owner' }

async function join(host: GatewayHost, id: string, url: string, more: object = {}): Promise<void> {
  await host.registry.register({ agent_id: 'echo', name: 'Echo', instance_id: id, url, ...more }, OWNER)
}

function leave(host: GatewayHost, instanceId: string): Promise<void> {
  return host.registry.deregister('echo', OWNER, { instanceId })
}

/** Answers with the id of the instance; knows the tasks that it began, and no other. */
function instanceOf(id: string, tasks = new Set<string>()): Script {
  return ({ body }, response) => {
    const {
      id: rpcId,
      method,
      params,
    } = JSON.parse(body) as {
      id: unknown
      method: string
      params: { id?: string; message?: { taskId?: string } }
    }
    const answer = (outcome: object) => json(response, JSON.stringify({ jsonrpc: '2.0', id: rpcId, ...outcome }))
    const taskId = params.message?.taskId ?? params.id
    if (taskId !== undefined && !tasks.has(taskId)) {
      answer({ error: { code: -32001, message: 'Task not found' } })
    } else if (taskId !== undefined) {
      answer({ result: { kind: 'task', id: taskId, by: id, method, status: { state: 'working' } } })
    } else if (method === 'message/stream') {
      const begun = `${id}-streamed-${tasks.size}`
      tasks.add(begun)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const result = { kind: 'task', id: begun, status: { state: 'completed' } }
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: rpcId, result })}\n\n`)
    } else if (method === 'message/send') {
      const begun = `${id}-${tasks.size}`
      tasks.add(begun)
      answer({ result: { kind: 'task', id: begun, by: id, status: { state: 'working' } } })
    } else answer({ result: { by: id } })
  }
}

async function threeInstances(host: GatewayHost): Promise<ReadonlyMap<string, ScriptedAgent>> {
  const agents = new Map<string, ScriptedAgent>()
  for (const id of ['a', 'b', 'c']) {
    const agent = await startAgent(instanceOf(id))
    agents.set(id, agent)
    await join(host, id, agent.url)
  }
  return agents
}

/** Begins a stream that does not end. */
const openStream: Script = (asked, response) => {
  if (asked.body.includes('stream_cancel')) {
    json(response, '{}')
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('data: {"type":"status_update","payload":{}}\n\n')
}

async function say(at: GatewayHost, contextId: string, name = 'contextId'): Promise<string> {
  return by(await at.call('echo', { message: { [name]: contextId, parts: [] } }))
}

function by(answer: { readonly result?: unknown }): string {
  const { result } = answer
  return typeof result === 'object' && result !== null && 'by' in result ? String(result.by) : 'none'
}

test('A28 - instances: a call goes to the instance with the fewest calls in flight', async () => {
  const host = await openGateway()
  const agents = await threeInstances(host)
  const found: string[] = []
  for (let i = 0; i < 9; i++) found.push(by(await host.call('echo', {}, 'ping')))
  expect(found.join('')).toBe('abc'.repeat(3))
  const a = agents.get('a')
  if (a === undefined) throw new Error('no agent')
  a.script = hang
  let answered = 0
  const waiting = Array.from({ length: 3 }, () => host.call('echo', {}, 'ping').finally(() => answered++))
  await until(() => answered === 2)
  expect(Object.fromEntries(host.connector.inFlightByInstance('echo'))).toEqual({ a: 1, b: 0, c: 0 })
  for (let i = 0; i < 6; i++) expect(by(await host.call('echo', {}, 'ping'))).not.toBe('a')
  await a.close()
  const answers = await Promise.all(waiting)
  // The call that the instance had under way is lost; no other.
  expect(answers.filter(({ error }) => error?.code === -32003)).toHaveLength(1)
})

test('A28 - instances: AgentMaxConcurrency is the limit of each instance', async () => {
  const host = await openGateway({ agentMaxConcurrency: 2 })
  const release: (() => void)[] = []
  const script: Script = (_asked, response) => release.push(() => json(response, '"done"'))
  for (const id of ['a', 'b']) await join(host, id, (await startAgent(script)).url)
  const calls = Array.from({ length: 4 }, () => host.call('echo'))
  await until(() => release.length === 4)
  expect(await host.call('echo')).toMatchObject({ error: { message: 'server busy: concurrency limit reached' } })
  for (const answer of release) answer()
  for (const answer of await Promise.all(calls)) expect(answer).toMatchObject({ result: 'done' })
})

test('A28 - instances: a call is sent again only if nothing was sent, and once', async () => {
  const host = await openGateway()
  const dead = await startAgent()
  await dead.close()
  const alive = await startAgent(instanceOf('alive'))
  await join(host, 'dead', dead.url)
  await join(host, 'alive', alive.url)
  for (let i = 0; i < 20; i++) expect(by(await host.call('echo', {}, 'ping'))).toBe('alive')
  expect(alive.asked).toHaveLength(20)

  // It has read the request, so it may have acted.
  alive.script = (_asked, response) => response.socket?.destroy()
  await leave(host, 'dead')
  const other = await startAgent(instanceOf('other'))
  await join(host, 'other', other.url)
  const answers = await Promise.all(Array.from({ length: 2 }, () => host.call('echo', {}, 'ping')))
  expect(new Set(answers.map(({ error }) => error?.code))).toEqual(new Set([-32003, undefined]))
  expect([alive.asked.length, other.asked.length]).toEqual([21, 1])

  await other.close()
  await leave(host, 'alive')
  await join(host, 'dead', dead.url)
  expect(await host.call('echo', {}, 'ping')).toMatchObject({
    error: { code: -32003, message: 'agent unreachable: connection refused' },
  })
})

test('A28 - instances: an instance that leaves finishes its calls and gets no new ones', async () => {
  const host = await openGateway()
  const agents = await threeInstances(host)
  const a = agents.get('a')
  if (a === undefined) throw new Error('no agent')
  const release = Promise.withResolvers<void>()
  a.script = (_asked, response) => void release.promise.then(() => json(response, '{"by":"a"}'))
  const first = host.call('echo', {}, 'ping')
  await a.reached(1)
  await leave(host, 'a')
  for (let i = 0; i < 6; i++) expect(by(await host.call('echo', {}, 'ping'))).not.toBe('a')
  release.resolve()
  expect(by(await first)).toBe('a')
  expect([...host.connector.inFlightByInstance('echo').keys()].toSorted()).toEqual(['b', 'c'])
  await host.registry.deregister('echo', OWNER)
  expect(await host.call('echo', {}, 'ping')).toMatchObject({ error: { code: -32002 } })
})

test('A29 - instances: later calls about a task go to the instance that started it', async () => {
  const host = await openGateway()
  await threeInstances(host)
  for (let i = 0; i < 6; i++) {
    const begun = await host.call('echo', { message: { parts: [] } })
    const { id: taskId } = begun.result as { id: string }
    for (const [method, params] of [
      ['tasks/get', { id: taskId }],
      ['tasks/cancel', { id: taskId }],
      ['message/send', { message: { taskId, parts: [] } }],
    ] as const) {
      expect(by(await host.call('echo', params, method))).toBe(by(begun))
    }
  }
})

test('A29 - instances: the task of a stream is known from its first events', async () => {
  const host = await openGateway()
  const agents = await threeInstances(host)
  const client = await StreamClient.open(`${host.base}/a2a/echo`, {
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} }),
  })
  await client.ended
  const [owner] = [...agents].find(([, { asked }]) => asked.length > 0) ?? []
  for (let i = 0; i < 4; i++) {
    expect(by(await host.call('echo', { id: `${owner}-streamed-0` }, 'tasks/get'))).toBe(owner)
  }
  // Without a search: only the owner was asked.
  expect([...agents].map(([id, { asked }]) => (id === owner ? 0 : asked.length))).toEqual([0, 0, 0])
  expect(agents.get(owner ?? '')?.asked).toHaveLength(5)
})

test('A29 - instances: for a task that no node remembers, the instances are asked in turn', async () => {
  const host = await openGateway()
  const tasks = new Set(['known'])
  const agents: ScriptedAgent[] = []
  for (const id of ['a', 'b', 'c']) {
    const agent = await startAgent(instanceOf(id, id === 'c' ? tasks : new Set()))
    agents.push(agent)
    await join(host, id, agent.url)
  }
  expect(by(await host.call('echo', { id: 'known' }, 'tasks/get'))).toBe('c')
  const asked = agents.map((agent) => agent.asked.length)
  expect(by(await host.call('echo', { id: 'known' }, 'tasks/get'))).toBe('c')
  expect(agents.map((agent) => agent.asked.length)).toEqual([asked[0], asked[1], (asked[2] ?? 0) + 1])
  expect(await host.call('echo', { id: 'unknown' }, 'tasks/get')).toMatchObject({ error: { code: -32001 } })
  expect(agents.map((agent) => agent.asked.length)).toEqual([
    (asked[0] ?? 0) + 1,
    (asked[1] ?? 0) + 1,
    (asked[2] ?? 0) + 2,
  ])
  // The owner cannot be reached: nobody can say that there is no such task.
  await agents[2]?.close()
  expect(await host.call('echo', { id: 'known' }, 'tasks/get')).toMatchObject({ error: { code: -32003 } })
  tasks.clear()
  await leave(host, 'c')
  expect(await host.call('echo', { id: 'known' }, 'tasks/get')).toMatchObject({ error: { code: -32001 } })
})

test('A29 - instances: a task that no instance knows is not found, even if an instance is unreachable', async () => {
  const host = await openGateway()
  const agents = await threeInstances(host)
  await agents.get('b')?.close()
  // Whichever of them is asked first.
  for (let i = 0; i < 4; i++) {
    expect(await host.call('echo', { id: `unknown-${i}` }, 'tasks/get')).toMatchObject({ error: { code: -32001 } })
  }
  for (const agent of agents.values()) await agent.close()
  expect(await host.call('echo', { id: 'unknown' }, 'tasks/get')).toMatchObject({ error: { code: -32003 } })
})

test('A29 - instances: the messages of a context go to one instance, on every node, while it can be reached', async () => {
  const host = await openGateway()
  const agents = await threeInstances(host)
  const other = await openGateway()
  for (const [id, { url }] of [...agents].toReversed()) await join(other, id, url)
  const used = new Set<string>()
  for (let i = 0; i < 12; i++) {
    const answers = await Promise.all([say(host, `c${i}`), say(other, `c${i}`), say(host, `c${i}`, 'context_id')])
    expect(new Set(answers).size).toBe(1)
    for (const answer of answers) used.add(answer)
  }
  expect(used.size).toBe(3)
  const first = await say(host, 'c0')
  await agents.get(first)?.close()
  const next = await say(host, 'c0')
  expect([next, await say(host, 'c0')]).not.toContain(first)
  expect(await say(host, 'c0')).toBe(next)
})

test('A29 - instances: a context that an instance has named stays with it', async () => {
  const host = await openGateway()
  for (const id of ['a', 'b', 'c']) {
    const script: Script = (_asked, response) =>
      json(response, `{"jsonrpc":"2.0","id":1,"result":{"kind":"message","by":"${id}","contextId":"of-${id}"}}`)
    await join(host, id, (await startAgent(script)).url)
  }
  for (let i = 0; i < 6; i++) {
    const began = by(await host.call('echo', { message: { parts: [] } }))
    const message = { contextId: `of-${began}`, parts: [] }
    for (let n = 0; n < 3; n++) expect(by(await host.call('echo', { message }))).toBe(began)
  }
})

test('A29 - instances: lists over several instances are sorted by time, newest first', async () => {
  const host = await openGateway()
  // The first has the three newest tasks, then each in turn.
  const times = { a: [20, 19, 18, 16, 14, 12], b: [17, 15, 13, 11, 10, 9] }
  for (const [id, own] of Object.entries(times)) {
    const agent = await startAgent(({ body }, response) => {
      const { id: rpcId, params } = JSON.parse(body) as {
        id: unknown
        params: { pageToken?: string; pageSize: number }
      }
      const from = Number(params.pageToken || 0)
      const next = from + params.pageSize
      const tasks = own.slice(from, next).map((second) => {
        const timestamp = new Date(second * 1_000).toISOString()
        return { id: `${id}-${second}`, contextId: 'c', status: { state: 'TASK_STATE_COMPLETED', timestamp } }
      })
      const nextPageToken = next < own.length ? `${next}` : ''
      json(
        response,
        JSON.stringify({ jsonrpc: '2.0', id: rpcId, result: { tasks, nextPageToken, totalSize: own.length } }),
      )
    })
    await join(host, id, agent.url)
  }
  const seen: number[] = []
  let pageToken = ''
  do {
    const answer: unknown = await host.call('echo', { pageSize: 4, pageToken }, 'ListTasks')
    const { result } = answer as { result: { tasks: { id: string }[]; nextPageToken: string; totalSize: number } }
    expect([result.tasks.length <= 4, result.totalSize]).toEqual([true, 12])
    seen.push(...result.tasks.map((task) => Number(task.id.slice(2))))
    pageToken = result.nextPageToken
  } while (pageToken !== '')
  expect(seen).toEqual([20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9])
})

test('A10, A29 - instances: stream_cancel goes to the instance of the stream', async () => {
  const host = await openGateway()
  const agents = await threeInstances(host)
  for (const agent of agents.values()) agent.script = openStream
  const client = await StreamClient.open(`${host.base}/a2a/echo`, {
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} }),
  })
  await until(() => [...agents.values()].some(({ asked }) => asked.length === 1))
  const owner = [...agents.values()].find(({ asked }) => asked.length === 1)
  const streamId = owner?.asked[0]?.headers['x-broker-stream-id']
  await host.call('echo', { stream_id: streamId }, 'stream_cancel')
  await until(() => (owner?.asked.length ?? 0) >= 2)
  expect([...agents.values()].filter(({ asked }) => asked.length > 0)).toEqual([owner])
  client.cut()
})

test('A20, A28 - instances: the public card does not show their addresses, and keeps its ETag', async () => {
  const host = await openGateway()
  const read = () => fetch(`${host.base}/a2a/echo/.well-known/agent-card.json`)
  await join(host, 'a', 'http://127.0.0.1:9/a')
  const first = await read()
  const text = await first.text()
  expect([text.includes('instance'), text.includes('127.0.0.1:9/')]).toEqual([false, false])
  await join(host, 'b', 'http://127.0.0.1:9/b')
  expect((await read()).headers.get('etag')).toBe(first.headers.get('etag'))
})

test('A29 - task owners: the ones that were used longest ago are forgotten', () => {
  const owners = new TaskOwners(2)
  owners.set('echo', 't1', 'a')
  owners.set('echo', 't2', 'b')
  expect(owners.get('echo', 't1')).toBe('a')
  owners.set('echo', 't3', 'c')
  owners.set('echo', 'x'.repeat(257), 'd')
  expect([owners.size, owners.get('echo', 't1'), owners.get('echo', 't2')]).toEqual([2, 'a', undefined])
})
