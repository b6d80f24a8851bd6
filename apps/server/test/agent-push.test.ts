import type { ServerResponse } from 'node:http'
import { join } from 'node:path'

import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import type { Receiver } from '@signalbox/testkit/webhook-receiver'
import { answer, isSignedWith, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { describe, expect, test } from 'vitest'

import type { PartialConfig } from '../src/config/load.ts'
import type { RunningServer } from '../src/server.ts'
import { listed, postJson, register, startAgent } from './support/agent.ts'
import { serveNode, startNats } from './support/nodes.ts'
import { serve } from './support/server.ts'
import { issuer, trusting } from './support/tokens.ts'

const PULL = 'puller'
const DURABLE = 'durable'
const V10 = { 'a2a-version': '1.0' }

function settings(folder: string, more: PartialConfig = {}): PartialConfig {
  return { webhooks: { enable: true, keyFile: join(folder, 'webhooks.key'), allow: ['127.0.0.1'] }, ...more }
}

type Headers = Readonly<Record<string, string>>

interface Config {
  readonly id: string
}

/** A result of any method of these tests. */
interface Result extends Config {
  readonly task: Config
  readonly configs: readonly Config[]
}

interface Rpc {
  readonly result: Result
  readonly error?: object
}

interface Leased {
  readonly items: readonly { readonly receipt: string; readonly task_id: string }[]
}

/** The calls of one caller to one server. */
function caller(server: RunningServer, headers: Headers = {}) {
  const base = server.http.url
  const call = async (agent: string, method: string, params: object, more: Headers = V10): Promise<Rpc> => {
    const body = { jsonrpc: '2.0', id: 1, method, params }
    return (await postJson(`${base}/a2a/${agent}`, body, { ...more, ...headers })).json() as Promise<Rpc>
  }
  return {
    call,
    send: (agent: string, params: object = {}, messageId: string = crypto.randomUUID()): Promise<Rpc> =>
      call(agent, 'SendMessage', {
        message: { messageId, role: 'ROLE_USER', parts: [{ text: 'work' }] },
        configuration: { returnImmediately: true },
        ...params,
      }),
    /** Sends a message and reads its stream to the end. */
    stream: async (agent: string, params: object): Promise<string> => {
      const body = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params }
      return (await postJson(`${base}/a2a/${agent}`, body, { ...V10, ...headers })).text()
    },
    rest: async (method: string, path: string, body?: object) => {
      const init = body === undefined ? {} : { body: JSON.stringify(body) }
      const type = { 'content-type': 'application/json' }
      const all = { ...type, ...V10, ...headers }
      const response = await fetch(`${base}/a2a/${path}`, { method, headers: all, ...init })
      return { status: response.status, json: (await response.json()) as Result }
    },
    inbox: async (name: string, body: object): Promise<Leased> =>
      (await postJson(`${base}/agents/${PULL}/inbox/${name}`, body, headers)).json() as Promise<Leased>,
  }
}

type Calls = ReturnType<typeof caller>

/** A lessee of the pull agent that has one request. */
async function leased({ inbox }: Calls) {
  const { items } = await inbox('lease', { max: 1, wait_seconds: 10 })
  const { receipt, task_id: taskId } = items[0] ?? raise('nothing was leased')
  let offset = 0
  return {
    taskId,
    async write(...events: object[]): Promise<void> {
      expect(await inbox('events', { receipt, offset, events })).toMatchObject({ accepted: offset + events.length })
      offset += events.length
    },
  }
}

function status(state: string): object {
  return { statusUpdate: { status: { state: `TASK_STATE_${state}` } } }
}

function artifact(text: string, more: object = {}): object {
  return { artifactUpdate: { artifact: { artifactId: 'a', parts: [{ text }] }, ...more } }
}

function raise(problem: string): never {
  throw new Error(problem)
}

/** A task of A2A 0.3. */
interface Task03 extends WithStatus, Config {
  readonly kind: string
  readonly artifacts?: readonly object[]
}

interface WithStatus {
  readonly status: { readonly state: string }
}

interface Notification {
  readonly artifactUpdate?: { readonly artifact: { readonly parts: readonly { readonly text: string }[] } }
  readonly statusUpdate?: WithStatus
  readonly task?: WithStatus
}

function stateOf({ artifactUpdate, statusUpdate, task }: Notification): string | undefined {
  if (artifactUpdate !== undefined) return artifactUpdate.artifact.parts.map(({ text }) => text).join('')
  return (statusUpdate ?? task)?.status.state
}

function states({ bodies }: Receiver): readonly (string | undefined)[] {
  return bodies.map((body) => stateOf(JSON.parse(body) as Notification))
}

async function servePull(folder = testFolder(), more: PartialConfig = {}): Promise<RunningServer> {
  const server = await serve(settings(folder, { store: { path: join(folder, 'store') }, ...more }))
  await register(server.http.url, { agent_id: PULL, name: 'p', a2a: { pull: true } })
  return server
}

test('push - a configuration in a message gets every event in order, with token and credentials, and then ends', async () => {
  const server = await servePull()
  const me = caller(server)
  const endpoint = await openReceiver()
  const authentication = { scheme: 'Bearer', credentials: 'abc' }
  const taskPushNotificationConfig = { id: 'one', url: endpoint.url, token: 'tok', authentication }
  const sent = await me.send(PULL, { configuration: { returnImmediately: true, taskPushNotificationConfig } })
  const { id: taskId } = sent.result.task
  const listed = await me.call(PULL, 'ListTaskPushNotificationConfigs', { taskId })
  expect(listed.result).toEqual({
    configs: [{ taskId, id: 'one', url: endpoint.url, authentication: { scheme: 'Bearer' } }],
  })
  const lessee = await leased(me)
  await lessee.write(status('WORKING'))
  await lessee.write(artifact('a'), artifact('b', { append: true }), artifact('c', { append: true, lastChunk: true }))
  await lessee.write(status('COMPLETED'))
  await until(() => endpoint.received.length === 5)
  expect(states(endpoint)).toEqual(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'a', 'abc', 'TASK_STATE_COMPLETED'])
  for (const { headers } of endpoint.received) {
    expect(headers).toMatchObject({
      'content-type': 'application/a2a+json',
      authorization: 'Bearer abc',
      'x-a2a-notification-token': 'tok',
    })
    expect(headers['webhook-signature']).toBeUndefined()
  }
  await until(
    async () => (await me.call(PULL, 'ListTaskPushNotificationConfigs', { taskId })).result.configs.length === 0,
  )
})

test('push - agents that the gateway logs say so in their cards, and others are unchanged', async () => {
  const server = await servePull()
  const agent = await startAgent(({ body }, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { got: JSON.parse(body).params } }))
  })
  const base = server.http.url
  await register(base, { agent_id: 'plain', name: 'p', url: agent.url, a2a: { wire: '1.0' } })
  await register(base, { agent_id: DURABLE, name: 'd', url: agent.url, a2a: { wire: '1.0', durable: true } })
  const capabilities = async (id: string) => {
    const response = await fetch(`${base}/a2a/${id}/.well-known/agent-card.json`, { headers: V10 })
    return ((await response.json()) as { capabilities: object }).capabilities
  }
  expect(await capabilities('plain')).not.toMatchObject({ pushNotifications: true })
  expect(await capabilities(DURABLE)).toMatchObject({ pushNotifications: true })
  expect(await capabilities(PULL)).toMatchObject({ pushNotifications: true })
  const params = { taskId: 't', id: 'c', url: 'http://127.0.0.1:9/hook' }
  const { result } = await caller(server).call('plain', 'CreateTaskPushNotificationConfig', params)
  expect(result).toEqual({ got: params })
})

test('push - all methods, in both versions of A2A and over HTTP+JSON', async () => {
  const server = await servePull()
  const me = caller(server)
  const { url } = await openReceiver()
  const { id: taskId } = (await me.send(PULL)).result.task
  const created = await me.call(PULL, 'CreateTaskPushNotificationConfig', { taskId, id: 'ten', url, token: 'secret' })
  expect(created.result).toEqual({ taskId, id: 'ten', url, token: 'secret' })
  const read = await me.call(PULL, 'GetTaskPushNotificationConfig', { taskId, id: 'ten' })
  expect(read.result).toEqual({ taskId, id: 'ten', url })

  const old = (method: string, params: object) =>
    me.call(PULL, `tasks/pushNotificationConfig/${method}`, params, { 'a2a-version': '0.3' })
  const pushNotificationConfig = { id: 'old', url }
  expect(await old('set', { taskId, pushNotificationConfig })).toMatchObject({
    result: { taskId, pushNotificationConfig },
  })
  expect(await old('get', { id: taskId, pushNotificationConfigId: 'old' })).toMatchObject({
    result: { taskId, pushNotificationConfig },
  })
  expect((await old('list', { id: taskId })).result).toHaveLength(2)
  expect(await old('delete', { id: taskId, pushNotificationConfigId: 'old' })).toMatchObject({ result: null })
  expect((await old('get', { id: taskId, pushNotificationConfigId: 'old' })).error).toMatchObject({ code: -32001 })

  const path = `${PULL}/tasks/${taskId}/pushNotificationConfigs`
  expect(await me.rest('POST', path, { id: 'rest', url })).toEqual({ status: 200, json: { taskId, id: 'rest', url } })
  expect(await me.rest('GET', `${path}/rest`)).toEqual({ status: 200, json: { taskId, id: 'rest', url } })
  expect((await me.rest('GET', path)).json.configs.map(({ id }: { id: string }) => id)).toEqual(['ten', 'rest'])
  expect(await me.rest('DELETE', `${path}/rest`)).toEqual({ status: 200, json: {} })
  expect((await me.rest('GET', `${path}/rest`)).status).toBe(404)
  expect((await me.call(PULL, 'DeleteTaskPushNotificationConfig', { taskId, id: 'ten' })).error).toBeUndefined()
  expect((await me.call(PULL, 'ListTaskPushNotificationConfigs', { taskId })).result).toEqual({ configs: [] })
})

test.each([
  [{ url: 'http://10.0.0.1/hook' }, /may not be called/],
  [{ url: 'ftp://example.com/' }, /https URL/],
  [{}, /params.url is missing/],
  [{ url: 'http://127.0.0.1:9/', token: 'a\nb' }, /params.token must be/],
  [{ url: 'http://127.0.0.1:9/', token: 'whsec_no' }, /whsec_/],
  [{ url: 'http://127.0.0.1:9/', authentication: { scheme: 'a b', credentials: 'c' } }, /scheme/],
])('push - refuses the configuration %j', async (config, problem) => {
  const server = await servePull()
  const me = caller(server)
  const { id: taskId } = (await me.send(PULL)).result.task
  const { error } = await me.call(PULL, 'CreateTaskPushNotificationConfig', { taskId, ...config })
  expect(error).toMatchObject({ code: -32602, message: expect.stringMatching(problem) })
})

test('push - a refused configuration keeps its message from the agent', async () => {
  const server = await servePull()
  const me = caller(server)
  const taskPushNotificationConfig = { url: 'http://10.0.0.1/' }
  const { error } = await me.send(PULL, { configuration: { taskPushNotificationConfig } })
  expect(error).toMatchObject({ code: -32602 })
  expect(await me.inbox('lease', { max: 1, wait_seconds: 0 })).toMatchObject({ items: [] })
})

test('push - a configuration of A2A 0.3 gets the task, and a token whsec_ signs', async () => {
  const server = await servePull()
  const me = caller(server)
  const endpoint = await openReceiver()
  const token = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const message = { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'work' }] }
  const configuration = { blocking: false, pushNotificationConfig: { url: endpoint.url, token } }
  const sent = await me.call(PULL, 'message/send', { message, configuration }, { 'a2a-version': '0.3' })
  const lessee = await leased(me)
  await lessee.write(artifact('done', { lastChunk: true }), status('COMPLETED'))
  await until(() => endpoint.received.length === 3)
  const tasks = endpoint.bodies.map((body) => JSON.parse(body) as Task03)
  expect(tasks.map(({ kind, id, status: { state } }) => [kind, id, state])).toEqual([
    ['task', sent.result.id, 'submitted'],
    ['task', sent.result.id, 'submitted'],
    ['task', sent.result.id, 'completed'],
  ])
  expect(tasks[2]?.artifacts).toMatchObject([{ parts: [{ kind: 'text', text: 'done' }] }])
  for (const received of endpoint.received) {
    expect(received.headers['content-type']).toBe('application/json')
    expect(isSignedWith(token, received)).toBe(true)
  }
})

test('push - an endpoint that fails gets the same event again, and then the later ones in order', async () => {
  const server = await servePull()
  const me = caller(server)
  const endpoint = await openReceiver()
  endpoint.reply = (response, received) => answer(endpoint.received.length === 1 ? 500 : 204)(response, received)
  const taskPushNotificationConfig = { url: endpoint.url }
  await me.send(PULL, { configuration: { returnImmediately: true, taskPushNotificationConfig } })
  await (await leased(me)).write(status('WORKING'), status('COMPLETED'))
  await until(() => endpoint.received.length === 4)
  expect(states(endpoint)).toEqual([
    'TASK_STATE_SUBMITTED',
    'TASK_STATE_SUBMITTED',
    'TASK_STATE_WORKING',
    'TASK_STATE_COMPLETED',
  ])
  const [first, second] = endpoint.received
  expect(first?.headers['webhook-id']).toBe(second?.headers['webhook-id'])
})

test('push - the answer 410 ends a configuration', async () => {
  const server = await servePull()
  const me = caller(server)
  const endpoint = await openReceiver()
  endpoint.reply = answer(410)
  const taskPushNotificationConfig = { url: endpoint.url }
  const sent = await me.send(PULL, { configuration: { returnImmediately: true, taskPushNotificationConfig } })
  const { id: taskId } = sent.result.task
  await until(() => endpoint.received.length === 1)
  await until(
    async () => (await me.call(PULL, 'ListTaskPushNotificationConfigs', { taskId })).result.configs.length === 0,
  )
  await (await leased(me)).write(status('COMPLETED'))
  expect(endpoint.received).toHaveLength(1)
})

test('push - a server that starts again continues with the next event', async () => {
  const folder = testFolder()
  const before = await servePull(folder)
  const endpoint = await openReceiver()
  const taskPushNotificationConfig = { url: endpoint.url, token: 'kept' }
  const configuration = { returnImmediately: true, taskPushNotificationConfig }
  await caller(before).send(PULL, { configuration })
  const lessee = await leased(caller(before))
  await lessee.write(status('WORKING'))
  await until(() => endpoint.received.length === 2)
  await before.close()
  const me = caller(await servePull(folder))
  const { taskId } = lessee
  expect((await me.call(PULL, 'ListTaskPushNotificationConfigs', { taskId })).result.configs).toHaveLength(1)
  // The lease ended with the server.
  await (await leased(me)).write(status('COMPLETED'))
  await until(() => endpoint.received.length === 4)
  expect(states(endpoint)).toEqual([
    'TASK_STATE_SUBMITTED',
    'TASK_STATE_WORKING',
    'TASK_STATE_SUBMITTED',
    'TASK_STATE_COMPLETED',
  ])
  expect(endpoint.received.at(-1)?.headers).toMatchObject({ 'x-a2a-notification-token': 'kept' })
})

test('push - a configuration of a task that is over gets its last event', async () => {
  const me = caller(await servePull())
  const endpoint = await openReceiver()
  const { id: taskId } = (await me.send(PULL)).result.task
  await (await leased(me)).write(status('WORKING'), artifact('x'), status('COMPLETED'))
  await me.call(PULL, 'CreateTaskPushNotificationConfig', { taskId, url: endpoint.url })
  await until(async () => {
    const { result } = await me.call(PULL, 'ListTaskPushNotificationConfigs', { taskId })
    return result.configs.length === 0
  })
  expect(states(endpoint)).toEqual(['TASK_STATE_COMPLETED'])
})

test('push - a configuration that is created later begins with the next event', async () => {
  const me = caller(await servePull())
  const endpoint = await openReceiver()
  const { id: taskId } = (await me.send(PULL)).result.task
  const lessee = await leased(me)
  await lessee.write(status('WORKING'))
  await me.call(PULL, 'CreateTaskPushNotificationConfig', { taskId, url: endpoint.url })
  await lessee.write(status('COMPLETED'))
  await until(() => endpoint.received.length === 1)
  expect(states(endpoint)).toEqual(['TASK_STATE_COMPLETED'])
})

test('push - a repeated message has one configuration, whose events are not repeated', async () => {
  const me = caller(await servePull())
  const endpoint = await openReceiver()
  const taskPushNotificationConfig = { id: 'one', url: endpoint.url }
  const configuration = { returnImmediately: true, taskPushNotificationConfig }
  const first = await me.send(PULL, { configuration }, 'same')
  await until(() => endpoint.received.length === 1)
  const second = await me.send(PULL, { configuration }, 'same')
  const { id: taskId } = second.result.task
  expect(taskId).toBe(first.result.task.id)
  await (await leased(me)).write(status('COMPLETED'))
  await until(() => endpoint.received.length === 2)
  await me.send(PULL, { configuration }, 'same')
  const { result } = await me.call(PULL, 'ListTaskPushNotificationConfigs', { taskId })
  expect(result.configs.length).toBeLessThanOrEqual(1)
  expect(states(endpoint)).toEqual(['TASK_STATE_SUBMITTED', 'TASK_STATE_COMPLETED'])
})

test('push - a server stops while it waits for an agent that does not answer about a task', async () => {
  const agent = await startAgent(({ method }, response) => {
    if (method === 'SendMessage') plain(response, { task: task('WORKING') })
  })
  const server = await serve(settings(testFolder()))
  await register(server.http.url, { agent_id: DURABLE, name: 'd', url: agent.url, a2a: { wire: '1.0', durable: true } })
  const endpoint = await openReceiver()
  const taskPushNotificationConfig = { url: endpoint.url }
  await caller(server).send(DURABLE, { configuration: { returnImmediately: true, taskPushNotificationConfig } })
  await until(() => agent.asked.some(({ method }) => method === 'GetTask'))
  const begin = performance.now()
  await server.close()
  expect(performance.now() - begin).toBeLessThan(10_000)
})

test('push - a task has at most 10 configurations', async () => {
  const server = await servePull()
  const me = caller(server)
  const { id: taskId } = (await me.send(PULL)).result.task
  const create = (id: string) =>
    me.call(PULL, 'CreateTaskPushNotificationConfig', { taskId, id, url: 'http://127.0.0.1:9/' })
  for (let count = 0; count < 10; count++) expect((await create(`c${count}`)).error).toBeUndefined()
  expect((await create('more')).error).toMatchObject({
    message: expect.stringContaining('10'),
    data: [{ reason: 'LIMIT_EXCEEDED' }],
  })
  // One with a known id replaces it.
  expect((await create('c3')).error).toBeUndefined()
})

test('push - a configuration that is refused does not replace the one with its id', async () => {
  const server = await servePull()
  const me = caller(server)
  const { id: taskId } = (await me.send(PULL)).result.task
  const config = { taskId, id: 'c', url: 'http://127.0.0.1:9/' }
  expect((await me.call(PULL, 'CreateTaskPushNotificationConfig', config)).error).toBeUndefined()
  const refused = await me.call(PULL, 'CreateTaskPushNotificationConfig', { ...config, url: 'ftp://127.0.0.1/' })
  expect(refused.error).toMatchObject({ code: -32602 })
  const { result } = await me.call(PULL, 'GetTaskPushNotificationConfig', { taskId, id: 'c' })
  expect(result).toEqual(config)
})

test('push - only the caller of a task changes its configurations; the owner of the agent reads them', async () => {
  const one = issuer()
  const folder = testFolder()
  const server = await serve(settings(folder, trusting(one)))
  const by = async (clientId: string) => caller(server, { authorization: await one.bearer(clientId) })
  const [owner, alice, bob] = [await by('owner'), await by('alice'), await by('bob')]
  const card = { agent_id: PULL, name: 'p', a2a: { pull: true } }
  const authorization = await one.bearer('owner')
  expect((await postJson(`${server.http.url}/agents/register`, card, { authorization })).status).toBe(200)
  const { url } = await openReceiver()
  const { id: taskId } = (await alice.send(PULL)).result.task
  const config = { taskId, id: 'c', url }
  expect((await alice.call(PULL, 'CreateTaskPushNotificationConfig', config)).error).toBeUndefined()
  const reference = { taskId, id: 'c' }
  for (const method of ['Get', 'Delete', 'Create']) {
    const { error } = await bob.call(PULL, `${method}TaskPushNotificationConfig`, config)
    expect(error).toMatchObject({ code: -32001 })
  }
  expect((await bob.call(PULL, 'ListTaskPushNotificationConfigs', { taskId })).error).toMatchObject({ code: -32001 })
  expect((await owner.call(PULL, 'GetTaskPushNotificationConfig', reference)).result).toEqual({ taskId, id: 'c', url })
  expect((await owner.call(PULL, 'DeleteTaskPushNotificationConfig', reference)).error).toMatchObject({ code: -32001 })
  expect((await alice.call(PULL, 'GetTaskPushNotificationConfig', reference)).error).toBeUndefined()
  expect((await alice.call(PULL, 'DeleteTaskPushNotificationConfig', reference)).error).toBeUndefined()
})

/** An event of the durable agent's stream. */
function event(result: object): string {
  return `data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result })}\n\n`
}

const ids = { taskId: 't', contextId: 'c' }
const task = (state: string) => ({ id: 't', contextId: 'c', status: { state: `TASK_STATE_${state}` } })
const update = (state: string) => event({ statusUpdate: { ...ids, status: { state: `TASK_STATE_${state}` } } })

function plain(response: ServerResponse, result: object): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
}

async function serveDurable(agentUrl: string): Promise<Calls> {
  const server = await serve(settings(testFolder()))
  await register(server.http.url, { agent_id: DURABLE, name: 'd', url: agentUrl, a2a: { wire: '1.0', durable: true } })
  return caller(server)
}

test('push - the events of several turns of an agent that is called, without the configuration in its requests', async () => {
  let turn = 0
  const agent = await startAgent(async (_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const first = turn++ === 0
    response.write(first ? event({ task: task('SUBMITTED') }) : update('WORKING'))
    response.end(update(first ? 'INPUT_REQUIRED' : 'COMPLETED'))
  })
  const me = await serveDurable(agent.url)
  const endpoint = await openReceiver()
  const taskPushNotificationConfig = { id: 'x', url: endpoint.url }
  const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'go' }] }
  const configuration = { taskPushNotificationConfig, historyLength: 3 }
  await me.stream(DURABLE, { message, configuration })
  expect(agent.asked[0]?.params).toEqual({ message, configuration: { historyLength: 3 } })
  await until(() => endpoint.received.length === 2)
  await me.stream(DURABLE, { message: { ...message, messageId: 'm2', taskId: 't' } })
  await until(() => endpoint.received.length === 4)
  expect(states(endpoint)).toEqual([
    'TASK_STATE_SUBMITTED',
    'TASK_STATE_INPUT_REQUIRED',
    'TASK_STATE_WORKING',
    'TASK_STATE_COMPLETED',
  ])
  await until(async () => {
    const { result } = await me.call(DURABLE, 'ListTaskPushNotificationConfigs', { taskId: 't' })
    return result.configs.length === 0
  })
})

test('push - a task that an agent answered at once is followed to its end', async () => {
  const release = Promise.withResolvers<void>()
  const agent = await startAgent(async ({ method }, response) => {
    if (method === 'SendMessage') return plain(response, { task: task('WORKING') })
    if (method === 'GetTask') return plain(response, task('WORKING'))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(event({ task: task('WORKING') }))
    await release.promise
    response.write(event({ artifactUpdate: { ...ids, artifact: { artifactId: 'a', parts: [{ text: 'all' }] } } }))
    response.end(update('COMPLETED'))
  })
  const me = await serveDurable(agent.url)
  const endpoint = await openReceiver()
  const taskPushNotificationConfig = { url: endpoint.url }
  const sent = await me.send(DURABLE, { configuration: { returnImmediately: true, taskPushNotificationConfig } })
  expect(sent.result.task).toMatchObject({ id: 't' })
  // A second configuration shares the subscription to the agent.
  await me.call(DURABLE, 'CreateTaskPushNotificationConfig', { taskId: 't', id: 'two', url: endpoint.url })
  await until(() => agent.asked.some(({ method }) => method === 'SubscribeToTask'))
  release.resolve()
  await until(() => endpoint.received.length === 5)
  expect(
    states(endpoint)
      .map(String)
      .toSorted((a, b) => (a < b ? -1 : 1)),
  ).toEqual(['TASK_STATE_COMPLETED', 'TASK_STATE_COMPLETED', 'TASK_STATE_WORKING', 'all', 'all'])
  expect(agent.asked.filter(({ method }) => method === 'SubscribeToTask')).toHaveLength(1)
})

test('push - an agent without streams is asked until the task is over', async () => {
  let asked = 0
  const agent = await startAgent(({ method }, response) => {
    if (method === 'SendMessage') return plain(response, { task: task('WORKING') })
    if (method === 'GetTask') return plain(response, task(++asked < 2 ? 'WORKING' : 'COMPLETED'))
    response.writeHead(200, { 'content-type': 'application/json' })
    const error = { code: -32601, message: 'no such method' }
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error }))
  })
  const me = await serveDurable(agent.url)
  const endpoint = await openReceiver()
  const taskPushNotificationConfig = { url: endpoint.url }
  await me.send(DURABLE, { configuration: { returnImmediately: true, taskPushNotificationConfig } })
  await until(() => endpoint.received.length === 2)
  expect(states(endpoint)).toEqual(['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'])
})

test('push - a server that starts again follows the task of a stream that its stop has cut', async () => {
  const agent = await startAgent(({ method }, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(event({ task: task('WORKING') }))
    if (method === 'SubscribeToTask') response.end(update('COMPLETED'))
  })
  const folder = testFolder()
  const open = () => serve(settings(folder, { store: { path: join(folder, 'store') } }))
  const before = await open()
  await register(before.http.url, { agent_id: DURABLE, name: 'd', url: agent.url, a2a: { wire: '1.0', durable: true } })
  const endpoint = await openReceiver()
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'go' }] }
  const configuration = { taskPushNotificationConfig: { url: endpoint.url } }
  const cut = caller(before).stream(DURABLE, { message, configuration })
  await until(() => endpoint.received.length === 1)
  await before.close()
  await cut.catch(() => {})
  await open()
  await until(() => states(endpoint).includes('TASK_STATE_COMPLETED'))
  expect(states(endpoint).filter((state) => state === 'TASK_STATE_COMPLETED')).toHaveLength(1)
})

describe.skipIf(NATS_SERVER === undefined)('push notifications across nodes', () => {
  test('push - another node continues when the node that delivers stops, in order and once', async () => {
    const nats = await startNats()
    const folder = testFolder()
    const nodes = [await serveNode(nats, settings(folder)), await serveNode(nats, settings(folder))] as const
    const [first, second] = nodes
    await register(first.http.url, { agent_id: PULL, name: 'p', a2a: { pull: true } })
    await until(async () => (await listed(second.http.url)).length === 1)
    const endpoint = await openReceiver()
    const taskPushNotificationConfig = { url: endpoint.url }
    await caller(first).send(PULL, { configuration: { returnImmediately: true, taskPushNotificationConfig } })
    const lessee = await leased(caller(second))
    await lessee.write(status('WORKING'))
    await until(() => endpoint.received.length === 2)
    const { taskId } = lessee
    const { result } = await caller(second).call(PULL, 'ListTaskPushNotificationConfigs', { taskId })
    expect(result.configs).toHaveLength(1)
    await first.close()
    await lessee.write(artifact('whole'), status('COMPLETED'))
    await until(() => endpoint.received.length === 4)
    expect(states(endpoint)).toEqual(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'whole', 'TASK_STATE_COMPLETED'])
  })
})
