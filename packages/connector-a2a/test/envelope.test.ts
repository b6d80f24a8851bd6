import { expect, test } from 'vitest'

import { startAgent } from './agents.ts'
import type { GatewayHost, RpcAnswer } from './gateway-host.ts'
import { messageSend, openGateway } from './gateway-host.ts'

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
