import Fastify from 'fastify'
import { testServer } from '@signalbox/testkit/test-server'
import { expect, onTestFinished, test } from 'vitest'

import { restResource } from '../../src/rest/rest-resource.ts'
import type { Script } from '../agents.ts'
import { always, json } from '../agents.ts'
import { called, openRest } from './host.ts'

const RESULT = '{ "b":1,"a":12345678901234567890, "a":"\\u00e9",\n"n":1.0 }'

/** Answers with a result whose text a parser would change. */
const verbatim: Script = (_asked, response) => json(response, `{"jsonrpc":"2.0","id":"x","result":${RESULT}}`)

const SEND = '{"z":1.50, "message":{"n":12345678901234567890}}'

const CONFIG = '{"url":"https://x.example/","n":12345678901234567890,"taskId":"other"}'

test.each([
  ['POST /message:send', SEND, 'SendMessage', 'message/send', SEND],
  [
    'GET /tasks/a%2Fb?historyLength=3&unknown=1&A2A-Version=1.0',
    undefined,
    'GetTask',
    'tasks/get',
    '{"historyLength":3,"id":"a/b"}',
  ],
  ['GET /tasks', undefined, 'ListTasks', 'tasks/list', '{}'],
  [
    'GET /tasks?contextId=c&status=working&pageSize=5&pageToken=p&historyLength=0&lastUpdatedAfter=2026-01-01T00:00:00Z&includeArtifacts=true&tenant=q',
    undefined,
    'ListTasks',
    'tasks/list',
    '{"tenant":"q","contextId":"c","status":"TASK_STATE_WORKING","pageSize":5,"pageToken":"p","historyLength":0,"statusTimestampAfter":"2026-01-01T00:00:00Z","includeArtifacts":true}',
  ],
  [
    'GET /tasks?context_id=c&page_size=5&include_artifacts=true',
    undefined,
    'ListTasks',
    'tasks/list',
    '{"contextId":"c","pageSize":5,"includeArtifacts":true}',
  ],
  [
    'GET /tasks?status=TASK_STATE_INPUT_REQUIRED&contextId=',
    undefined,
    'ListTasks',
    'tasks/list',
    '{"status":"TASK_STATE_INPUT_REQUIRED"}',
  ],
  ['POST /tasks/t:cancel', undefined, 'CancelTask', 'tasks/cancel', '{"id":"t"}'],
  // The SDK for Go sends this body.
  ['POST /tasks/t:cancel', 'null', 'CancelTask', 'tasks/cancel', '{"id":"t"}'],
  [
    'POST /tasks/t:cancel',
    '{"id":"t","metadata":{"n":1.0}}',
    'CancelTask',
    'tasks/cancel',
    '{"id":"t","metadata":{"n":1.0}}',
  ],
  [
    'POST /tasks/t/pushNotificationConfigs',
    CONFIG,
    'CreateTaskPushNotificationConfig',
    'tasks/pushNotificationConfig/set',
    '{"url":"https://x.example/","n":12345678901234567890,"taskId":"t"}',
  ],
  [
    'GET /tasks/t/pushNotificationConfigs?pageSize=2',
    undefined,
    'ListTaskPushNotificationConfigs',
    'tasks/pushNotificationConfig/list',
    '{"pageSize":2,"taskId":"t"}',
  ],
  [
    'GET /tasks/t/pushNotificationConfigs/c',
    undefined,
    'GetTaskPushNotificationConfig',
    'tasks/pushNotificationConfig/get',
    '{"taskId":"t","id":"c"}',
  ],
  ['GET /acme/tasks/t', undefined, 'GetTask', 'tasks/get', '{"tenant":"acme","id":"t"}'],
  ['POST /acme/message:send', '{"n":1.0,"tenant":"other"}', 'SendMessage', 'message/send', '{"n":1.0,"tenant":"acme"}'],
])(
  'rest - %s %s is the call of A2A 1.0 that it means, and its result is the body',
  async (request, body, method, label, params) => {
    const { host, agent, ask } = await openRest(verbatim)
    const { status, headers, text } = await ask(request, body === undefined ? {} : { body })
    expect([status, headers.get('content-type'), text]).toEqual([200, 'application/json', RESULT])
    const got = agent.asked[0]
    expect(got?.body).toMatch(/^\{"jsonrpc":"2\.0","id":"[0-9a-f-]{36}","method":"/)
    expect(got?.body.endsWith(`,"method":"${method}","params":${params}}`), got?.body).toBe(true)
    expect(got?.headers).toMatchObject({ 'a2a-version': '1.0', 'x-broker-caller-id': 'anonymous' })
    expect(host.finished).toMatchObject([{ agentId: 'agent-1', method: label, status: 'success' }])
  },
)

test('rest - a configuration is deleted with a body that every client reads', async () => {
  for (const result of ['null', '{}', '{"odd":1}']) {
    const { agent, ask } = await openRest(always(`{"jsonrpc":"2.0","id":1,"result":${result}}`))
    const { status, text } = await ask('DELETE /tasks/t/pushNotificationConfigs/c')
    expect([status, text]).toEqual([200, '{}'])
    const params = { taskId: 't', id: 'c' }
    expect(called(agent)).toMatchObject({ method: 'DeleteTaskPushNotificationConfig', params })
  }
})

test('rest - the extended card has the addresses of the gateway', async () => {
  const card = { name: 'Extended', supportedInterfaces: [{ url: 'http://secret.internal/' }] }
  const { host, ask } = await openRest(always(JSON.stringify({ jsonrpc: '2.0', id: 1, result: card })))
  const { status, text } = await ask('GET /extendedAgentCard')
  expect(status).toBe(200)
  expect(JSON.parse(text)).toMatchObject({ name: 'Extended' })
  expect(text).toContain(`"${host.base}/a2a/agent-1"`)
  expect(text).not.toContain('secret.internal')
})

test('rest - both media types are read, and the answer has the type that the client names', async () => {
  const { ask } = await openRest(verbatim)
  for (const type of [
    'application/a2a+json',
    'Application/A2A+JSON; charset=UTF-8',
    'application/json;charset=utf-8',
  ]) {
    const headers = { 'content-type': type, accept: 'application/a2a+json, application/json' }
    const answer = await ask('POST /message:send', { body: '{}', headers })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/a2a+json'])
  }
})

test('rest - answers to GET are not cached, and the headers of A2A reach the caller', async () => {
  const sent = { 'A2A-Extensions': 'https://x.example/ext', 'Set-Cookie': 'a=b' }
  const { agent, ask } = await openRest(always('{"jsonrpc":"2.0","id":1,"result":{}}', 200, sent))
  const { headers } = await ask('GET /tasks/t', { headers: { 'a2a-extensions': 'https://y.example/ext' } })
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('a2a-extensions')).toBe('https://x.example/ext')
  expect(headers.get('set-cookie')).toBeNull()
  expect(agent.asked[0]?.headers['a2a-extensions']).toBe('https://y.example/ext')
})

test('rest - an agent of A2A 0.3 is asked in 0.3, and its answer comes in 1.0', async () => {
  const task = { kind: 'task', id: 't', contextId: 'c', status: { state: 'input-required' } }
  const script = always(JSON.stringify({ jsonrpc: '2.0', id: 1, result: task }))
  const { agent, ask } = await openRest(script, {}, { wire: '0.3' })
  const { text } = await ask('GET /tasks/t?historyLength=1')
  expect(JSON.parse(text)).toEqual({ id: 't', contextId: 'c', status: { state: 'TASK_STATE_INPUT_REQUIRED' } })
  expect(called(agent)).toMatchObject({ method: 'tasks/get', params: { id: 't', historyLength: 1 } })
  const listed = await ask('GET /tasks')
  expect(listed.status).toBe(400)
  expect(listed.text).toContain('UNSUPPORTED_OPERATION')
  expect(agent.asked).toHaveLength(0)
})

test('rest - other methods are 405, other paths 404, and without official calls all of it is', async () => {
  const { agent, ask } = await openRest(verbatim)
  for (const [request, allow] of [
    ['GET /message:send', 'POST'],
    ['DELETE /tasks/t', 'GET'],
    ['GET /tasks/t:cancel', 'POST'],
    ['PUT /tasks/t:subscribe', 'GET, POST'],
    ['PUT /tasks/t/pushNotificationConfigs/c', 'GET, DELETE'],
    ['POST /extendedAgentCard', 'GET'],
  ] as const) {
    const { status, headers } = await ask(request)
    expect([request, status, headers.get('allow')]).toEqual([request, 405, allow])
  }
  expect((await ask('GET /nothing')).status).toBe(404)
  const off = await openRest(verbatim, { native: 'off' })
  expect((await off.ask('GET /tasks')).status).toBe(404)
  expect([...agent.asked, ...off.agent.asked]).toHaveLength(0)
})

test('rest - Prefer: wait bounds the time of the agent, as for other official calls', async () => {
  const { host, ask } = await openRest(() => {})
  const { status, text } = await ask('GET /tasks/t', { headers: { prefer: 'wait=1' } })
  expect([status, text]).toEqual([504, expect.stringContaining('AGENT_TIMEOUT')])
  expect(host.finished.pop()?.seconds).toBeLessThan(10)
})

test('rest - below a prefix of the host, and on the HTTP server of node', async () => {
  const { host, agent } = await openRest(verbatim)
  const app = Fastify()
  await app.register(host.connector.plugin, { prefix: '/hub/a2a' })
  onTestFinished(() => app.close())
  const { url } = await testServer(host.connector.handler)
  const bases = [`${await app.listen({ port: 0, host: '127.0.0.1' })}/hub/a2a`, url]
  for (const base of bases) {
    const response = await fetch(`${base}/a2a/agent-1/tasks/${encodeURIComponent('a/b:c')}`)
    expect([response.status, await response.text()]).toEqual([200, RESULT])
    expect(called(agent)).toMatchObject({ method: 'GetTask', params: { id: 'a/b:c' } })
  }
})

const found = (path: string): unknown => {
  const resource = restResource(path)
  return resource && [resource.agentId, Object.fromEntries(resource.operations), resource.members]
}

test.each([
  ['a1/message:send', ['a1', { POST: 'send' }, {}]],
  [`a1/message${encodeURIComponent(':')}send`, ['a1', { POST: 'send' }, {}]],
  ['a1/message:stream', ['a1', { POST: 'stream' }, {}]],
  ['a1/tasks', ['a1', { GET: 'list' }, {}]],
  ['a1/tasks/t', ['a1', { GET: 'get' }, { id: 't' }]],
  [`a1/tasks/${encodeURIComponent('a/b:cancel')}`, ['a1', { GET: 'get' }, { id: 'a/b:cancel' }]],
  ['a1/tasks/urn:x:1', ['a1', { GET: 'get' }, { id: 'urn:x:1' }]],
  ['a1/tasks/:cancel', ['a1', { GET: 'get' }, { id: ':cancel' }]],
  ['a1/tasks/urn:x:1:cancel', ['a1', { POST: 'cancel' }, { id: 'urn:x:1' }]],
  ['a1/tasks/t:subscribe', ['a1', { GET: 'resubscribe', POST: 'resubscribe' }, { id: 't' }]],
  ['a1/tasks/t/pushNotificationConfigs', ['a1', { GET: 'push-list', POST: 'push-create' }, { taskId: 't' }]],
  [
    'a1/tasks/t/pushNotificationConfigs/c%20d',
    ['a1', { GET: 'push-get', DELETE: 'push-delete' }, { taskId: 't', id: 'c d' }],
  ],
  ['a1/extendedAgentCard', ['a1', { GET: 'extended-card' }, {}]],
  ['a1/acme%2Feu/message:send', ['a1', { POST: 'send' }, { tenant: 'acme/eu' }]],
  ['a1/acme/tasks/t:cancel', ['a1', { POST: 'cancel' }, { tenant: 'acme', id: 't' }]],
  ['a1/acme/tasks/t/pushNotificationConfigs', expect.arrayContaining([{ tenant: 'acme', taskId: 't' }])],
  // Without a tenant counts first.
  ['a1/tasks/tasks', ['a1', { GET: 'get' }, { id: 'tasks' }]],
])('rest - resource: %s', (path, expected) => {
  expect(found(path)).toEqual(expected)
})

test.each([
  '',
  'a1',
  'a1/',
  'a1/message:send/',
  'a1//message:send',
  'a1/message:other',
  'a1/v1/message:send/x',
  'a1/a/b/tasks',
  'a1/tasks/t/other',
  'a1/tasks/t/pushNotificationConfigs/c/d',
  'a1/tasks/%zz',
  'a1/%zz/tasks',
  'a1/stream',
  'a1/v0.3',
  'a1/.well-known/agent-card.json',
])('rest - resource: %s is no resource of A2A', (path) => {
  expect(restResource(path)).toBeUndefined()
})
