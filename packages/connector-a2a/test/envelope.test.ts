import { once } from 'node:events'

import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { always, hang, json, startAgent } from './agents.ts'
import type { GatewayHost, RpcAnswer } from './gateway-host.ts'
import { messageSend, openGateway } from './gateway-host.ts'
import { RawConnection } from '@signalbox/testkit/raw-connection'

async function openWithAgent(): Promise<GatewayHost & { asked(): number }> {
  const host = await openGateway({ maxBodyBytes: 100_000 })
  const agent = await startAgent()
  await host.register('agent-1', agent.url)
  return { ...host, asked: () => agent.asked.length }
}

const code = ({ text }: { text: string }): unknown => (JSON.parse(text) as RpcAnswer).error?.code

const id = ({ text }: { text: string }): unknown => (JSON.parse(text) as RpcAnswer).id

test('J3, RPC-6, RPC-7 - envelope: a body that cannot be parsed is -32700 with status 200, and reaches no agent', async () => {
  const host = await openWithAgent()
  for (const body of ['', '{', 'null x', '{"jsonrpc":"2.0","id":1,"method":"m",}', "{'a':1}"]) {
    const answer = await host.post('agent-1', body)
    expect([answer.status, code(answer), id(answer)]).toEqual([200, -32700, null])
  }
  for (const type of ['text/plain', 'application/json; charset=latin1', 'application/jsonp', 'x', '']) {
    const answer = await host.post('agent-1', messageSend(), { 'content-type': type })
    expect([answer.status, code(answer), id(answer)]).toEqual([200, -32700, null])
  }
  expect(
    (await host.post('agent-1', messageSend(), { 'content-type': 'application/json; charset=UTF-8' })).status,
  ).toBe(200)
  expect(host.asked()).toBe(1)
})

test('J1, J2, J3, J4, RPC-1, RPC-3, GW-2 - envelope: an invalid request is -32600 with status 200, and reaches no agent', async () => {
  const host = await openWithAgent()
  const rows: [string, unknown][] = [
    ['[]', null],
    [`[${messageSend(1)}]`, null],
    ['"text"', null],
    ['{"jsonrpc":"1.0","id":"a","method":"m"}', 'a'],
    ['{"id":3,"method":"m"}', 3],
    ['{"jsonrpc":"2.0","id":3}', 3],
    ['{"jsonrpc":"2.0","id":3,"method":""}', 3],
    ['{"jsonrpc":"2.0","id":3,"method":7}', 3],
    ['{"jsonrpc":"2.0","id":null,"method":"m"}', null],
    ['{"jsonrpc":"2.0","id":1.5,"method":"m"}', null],
    ['{"jsonrpc":"2.0","id":{},"method":"m"}', null],
    ['{"jsonrpc":"2.0","id":1,"method":"m","method":"n"}', 1],
    ['{"jsonrpc":"2.0","id":1,"id":2,"method":"n"}', null],
    [`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":${'['.repeat(128)}${']'.repeat(128)}}}`, 1],
    ['{"jsonrpc":"2.0","id":1,"result":{}}', null],
  ]
  for (const [body, echoed] of rows) {
    const answer = await host.post('agent-1', body)
    expect([body, answer.status, code(answer), id(answer)]).toEqual([body, 200, -32600, echoed])
    expect(answer.headers.get('content-length')).toBe(String(Buffer.byteLength(answer.text)))
  }
  expect(host.asked()).toBe(0)
})

test('J2, A2, RPC-4 - envelope: params that are no object, or a timeout that is no positive number, are -32602', async () => {
  const host = await openWithAgent()
  for (const params of ['[]', 'null', '1', '"x"']) {
    const answer = await host.post('agent-1', `{"jsonrpc":"2.0","id":4,"method":"m","params":${params}}`)
    expect([answer.status, code(answer), id(answer)]).toEqual([200, -32602, 4])
  }
  for (const timeout of ['0', '-1', 'null', '"5"', '[]', '{}', 'true', '-0.0']) {
    const body = `{"jsonrpc":"2.0","id":4,"method":"m","params":{"configuration":{"timeout":${timeout}}}}`
    const answer = await host.post('agent-1', body)
    expect([answer.status, code(answer), id(answer)]).toEqual([200, -32602, 4])
    expect(answer.text).toContain('params.configuration.timeout')
    expect(answer.text).toContain('a number of seconds above 0')
  }
  expect(host.asked()).toBe(0)
  // What says nothing of a timeout is the agent's to judge.
  for (const configuration of ['null', '[]', '"x"', '{"timeOut":-1}', '{"__proto__":{"timeout":-1}}']) {
    const body = `{"jsonrpc":"2.0","id":4,"method":"m","params":{"configuration":${configuration}}}`
    expect(await host.post('agent-1', body)).toMatchObject({ text: `{"jsonrpc":"2.0","id":4,"result":${body}}` })
  }
})

test('J3 - envelope: a body over the limit is 413 and an encoded one 415, both with -32600', async () => {
  const host = await openWithAgent()
  const large = await host.post('agent-1', messageSend(1, { text: 'x'.repeat(100_000) }))
  expect([large.status, code(large), id(large)]).toEqual([413, -32600, null])
  const exact = messageSend(1, { text: '' })
  const filled = exact.replace('""', `"${'x'.repeat(100_000 - exact.length)}"`)
  expect((await host.post('agent-1', filled)).status).toBe(200)
  for (const encoding of ['gzip', 'identity']) {
    const encoded = await host.post('agent-1', messageSend(), { 'content-encoding': encoding })
    expect([encoded.status, code(encoded)]).toEqual([415, -32600])
  }
  expect(host.asked()).toBe(1)
})

test('A13, CODE-5 - envelope: an empty or invalid agent_id in the path is -32600, with the id of the request', async () => {
  const host = await openWithAgent()
  const ids = [
    '',
    'a',
    'A-1',
    '-a',
    'a-',
    'a_b',
    'a.b',
    'a%20b',
    '%65%C3%A9',
    'a'.repeat(129),
    'x'.repeat(3000),
    '..%5c',
    '__proto__',
  ]
  for (const agentId of ids) {
    const answer = await host.post(agentId, messageSend('me'))
    expect([agentId, answer.status, code(answer), id(answer)]).toEqual([agentId, 200, -32600, 'me'])
  }
  const answer = await fetch(`${host.base}/a2a`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: messageSend(5),
  })
  expect(await answer.json()).toMatchObject({ id: 5, error: { code: -32600 } })
  const longest = 'a'.repeat(128)
  expect(code(await host.post(longest, messageSend()))).toBe(-32002)
  // Escapes of what needs none mean the same.
  expect((await host.post('agent%2D1', messageSend())).text).toContain('"result"')
  expect(new Set(host.finished.map(({ agentId }) => agentId))).toEqual(new Set(['unknown', 'agent-1']))
})

test('A1, GW-3 - envelope: every method except POST is 405 with Allow: POST, before authentication', async () => {
  const host = await openGateway({
    authenticator: {
      authenticate() {
        throw new Error('nobody was to be asked')
      },
    },
  })
  for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const response = await fetch(`${host.base}/a2a/agent-1`, {
      method,
      headers: { origin: 'https://elsewhere.example', accept: 'text/event-stream' },
      ...(method === 'PUT' ? { body: 'x' } : {}),
    })
    expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, 'POST'])
    expect(await response.text()).toBe('')
  }
  const stream = await fetch(`${host.base}/a2a/agent-1/stream`, { method: 'POST', body: '{}' })
  expect([stream.status, stream.headers.get('allow')]).toEqual([405, 'GET'])
  expect(host.failures).toEqual([])
})

test('S5 - envelope: other paths below /a2a are 404 in plain text', async () => {
  const host = await openGateway()
  for (const path of [
    'agent-1/x',
    'agent-1/stream/x',
    'a/b/stream',
    'agent-1/',
    '/agent-1',
    'agent-1/.well-known/other.json',
  ]) {
    const response = await fetch(`${host.base}/a2a/${path}`)
    expect([path, response.status, response.headers.get('content-type')]).toEqual([
      path,
      404,
      'text/plain; charset=utf-8',
    ])
  }
})

const NOTE = '{"jsonrpc":"2.0","method":"tasks/note","params":{"n":1}}'

test('A6, GW-6 - notification: it is forwarded, and answered 202 and empty, in every state of the agent', async () => {
  const host = await openGateway({ agentMaxConcurrency: 1 })
  const agent = await startAgent()
  await host.register('good', agent.url)
  await host.register('dead', 'http://127.0.0.1:1/')
  const silent = await startAgent(hang)
  await host.register('busy', silent.url)
  const waiting = host.call('busy')
  await silent.reached(1)
  for (const [agentId, body] of [
    ['good', NOTE],
    ['dead', NOTE],
    ['busy', NOTE],
    ['nobody', NOTE],
    ['good', '{"jsonrpc":"2.0","method":"message/stream"}'],
    ['good', '{"jsonrpc":"2.0","method":"m","params":{"configuration":{"timeout":-1}}}'],
  ] as const) {
    const answer = await host.post(agentId, body)
    expect([agentId, answer.status, answer.text]).toEqual([agentId, 202, ''])
    expect(answer.headers.get('content-length')).toBe('0')
  }
  await agent.reached(3)
  expect(agent.asked.map(({ body }) => body)).toContain(NOTE)
  expect(agent.asked[0]?.headers['x-broker-caller-id']).toBe('anonymous')
  await until(() => host.finished.length === 6)
  expect(new Set(host.finished.map(({ agentId, status, errorCode }) => `${agentId} ${status} ${errorCode}`))).toEqual(
    new Set(['good success undefined', 'dead success undefined', 'busy error -32603', 'unknown error -32002']),
  )
  // A notification that can never arrive is answered with an error.
  expect(JSON.parse((await host.post('Not-An-Id', NOTE)).text)).toMatchObject({ id: null, error: { code: -32600 } })
  silent.script = always('{}')
  await silent.close()
  await waiting
  await until(() => ['good', 'dead', 'busy'].every((id) => host.connector.inFlight(id) === 0))
})

test('A6, M12 - notification: its caller does not wait for the agent, which counts it as any call', async () => {
  const host = await openGateway({ agentMaxConcurrency: 2 })
  const agent = await startAgent(hang)
  await host.register('slow', agent.url)
  expect((await host.post('slow', NOTE)).status).toBe(202)
  expect((await host.post('slow', NOTE)).status).toBe(202)
  await agent.reached(2)
  expect(host.connector.inFlight('slow')).toBe(2)
  expect(await host.call('slow')).toMatchObject({ error: { message: 'server busy: concurrency limit reached' } })
})

test('A16 - a caller that disconnects does not end its call; the answer is dropped, and all resources are released', async () => {
  const host = await openGateway()
  const answers: (() => void)[] = []
  const agent = await startAgent((_asked, response) => answers.push(() => json(response, '{}')))
  await host.register('agent-1', agent.url)
  const connection = await RawConnection.open(host.port)
  connection.post('/a2a/agent-1', '{"jsonrpc":"2.0","id":1,"method":"m"}')
  await agent.reached(1)
  connection.socket.resetAndDestroy()
  await until(async () => (await host.connections()) === 0)
  expect(host.connector.inFlight('agent-1')).toBe(1)
  const closed = once(agent.asked[0]?.socket ?? connection.socket, 'close')
  for (const answer of answers) answer()
  await until(() => host.connector.inFlight('agent-1') === 0 && host.finished.length === 1)
  expect(host.finished).toMatchObject([{ agentId: 'agent-1', status: 'success' }])
  expect(host.failures).toEqual([])
  // An idle connection is not kept for long: a server that closes it at the same moment would lose a request.
  await closed
})
