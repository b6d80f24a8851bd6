import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { McpHost } from './mcp-host.ts'
import { UNREAD_KINDS } from './mcp-host.ts'
import { openHost, rpc, startHost, toolCall } from './mcp-host.ts'

/** Name, body, HTTP status, JSON-RPC code, id of the answer as text. */
const BAD: [string, string | Uint8Array, number, number, string][] = [
  ['J3 - malformed JSON', '{"jsonrpc":"2.0","id":1,', 400, -32700, 'null'],
  ['J3 - an empty body', '', 400, -32700, 'null'],
  ['J3 - bytes that are not UTF-8', new Uint8Array([0x22, 0xff, 0x22]), 400, -32700, 'null'],
  ['J2 - a batch', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400, -32600, 'null'],
  ['J3 - jsonrpc 1.0', '{"jsonrpc":"1.0","id":7,"method":"ping"}', 400, -32600, '7'],
  ['J3 - an empty method', '{"jsonrpc":"2.0","id":7,"method":""}', 400, -32600, '7'],
  ['J3 - no method', '{"jsonrpc":"2.0","id":7}', 400, -32600, '7'],
  ['J1 - id null', '{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600, 'null'],
  ['J1 - id fractional', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400, -32600, 'null'],
  ['J1 - id an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600, 'null'],
  ['J1 - id an array', '{"jsonrpc":"2.0","id":[1],"method":"ping"}', 400, -32600, 'null'],
  ['J1 - id a boolean', '{"jsonrpc":"2.0","id":true,"method":"ping"}', 400, -32600, 'null'],
  ['J2 - the method twice', '{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}', 400, -32600, '7'],
  ['J2 - the id twice', '{"jsonrpc":"2.0","id":7,"id":7,"method":"ping"}', 400, -32600, 'null'],
  ['J2 - params an array', '{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}', 200, -32602, '7'],
  [
    'J4 - nested deeper than 128',
    `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":${'['.repeat(127)}${']'.repeat(127)}}}`,
    400,
    -32600,
    '7',
  ],
  [
    'J4 - more than 100,000 keys',
    `{"jsonrpc":"2.0","id":7,"method":"ping","params":{${Array.from({ length: 100_000 }, (_, n) => `"${n}":0`).join(',')}}}`,
    400,
    -32600,
    '7',
  ],
  ['-32601 - an unknown method', '{"jsonrpc":"2.0","id":"x","method":"resources/list"}', 200, -32601, '"x"'],
  ['-32602 - an unknown tool', JSON.stringify(toolCall('no_such_tool', {})), 200, -32602, '1'],
  [
    '-32602 - a tool name that is no string',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}',
    200,
    -32602,
    '1',
  ],
  ['-32602 - a tool call without params', '{"jsonrpc":"2.0","id":1,"method":"tools/call"}', 200, -32602, '1'],
  ['-32602 - a tool named like an object’s member', JSON.stringify(toolCall('__proto__', {})), 200, -32602, '1'],
  [
    '-32602 - arguments that are no object',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"channel_list","arguments":[]}}',
    200,
    -32602,
    '1',
  ],
  [
    '-32602 - arguments null',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"channel_list","arguments":null}}',
    200,
    -32602,
    '1',
  ],
  [
    '-32602 - a progress token that is no string or integer',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"channel_list","_meta":{"progressToken":1.5}}}',
    200,
    -32602,
    '1',
  ],
  [
    '-32602 - a cursor that was never given out',
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"a"}}',
    200,
    -32602,
    '1',
  ],
  [
    '-32602 - initialize without a version',
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}',
    200,
    -32602,
    '1',
  ],
]

describe.each(UNREAD_KINDS)('bad input on %s', (kind) => {
  let host: McpHost

  beforeAll(async () => {
    host = await openHost({}, kind)
  })

  afterAll(() => host[Symbol.asyncDispose]())

  test('J1, J2, J3, J4 - each is refused with its status, its code and its id, and the next request is served', async () => {
    for (const [name, body, status, code, id] of BAD) {
      const answer = await host.post(body)
      expect(answer.status, name).toBe(status)
      expect(rpc(answer).error?.code, name).toBe(code)
      expect(rpc(answer).error?.message, name).toMatch(/\w/)
      expect(answer.text, name).toContain(`"id":${id},`)
      expect(answer.headers.get('content-type'), name).toBe('application/json')
      expect(Number(answer.headers.get('content-length')), name).toBe(Buffer.byteLength(answer.text))
    }
    expect((await host.post({ jsonrpc: '2.0', id: 1, method: 'ping' })).text).toBe(
      '{"jsonrpc":"2.0","id":1,"result":{}}',
    )
    expect(await host.user.channels.list()).toEqual([])
    expect(host.failures).toEqual([])
  })

  test('J3, RPC-7 - a wrong content type is -32700, in every framework', async () => {
    for (const type of [
      'text/plain',
      'application/jsonx',
      'garbage',
      'application/json; charset=latin1',
      'multipart/form-data',
    ]) {
      const answer = await host.post('{"jsonrpc":"2.0","id":1,"method":"ping"}', { 'Content-Type': type })
      expect(answer.status, type).toBe(400)
      expect(rpc(answer), type).toMatchObject({ id: null, error: { code: -32700 } })
    }
    const none = await fetch(host.url, { method: 'POST', body: new Uint8Array(Buffer.from('{}')) })
    expect(none.status).toBe(400)
    expect(await none.json()).toMatchObject({ error: { code: -32700 } })
  })

  test('J3 - a content encoding is 415 with -32600', async () => {
    const answer = await host.post('{"jsonrpc":"2.0","id":1,"method":"ping"}', { 'Content-Encoding': 'gzip' })
    expect(answer.status).toBe(415)
    expect(rpc(answer)).toMatchObject({ id: null, error: { code: -32600 } })
  })

  test('J3 - a body over the limit is 413 with -32600; one of the limit is read', async () => {
    const host = await startHost({ maxBodyBytes: 1000 }, kind)
    const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
    expect((await host.post(ping.padEnd(1000))).status).toBe(200)
    const over = await host.post(ping.padEnd(1001))
    expect(over.status).toBe(413)
    expect(rpc(over)).toMatchObject({ id: null, error: { code: -32600 } })
    const far = await host.post(ping.padEnd(3_000_000))
    expect(far.status).toBe(413)
  })

  test('J1, RPC-2 - ids are echoed exactly as they were written', async () => {
    for (const id of ['9007199254740993', '-0', '"\\u00e9 \\" é"', '""', '123456789012345678901234567890']) {
      const answer = await host.post(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`)
      expect(answer.text).toBe(`{"jsonrpc":"2.0","id":${id},"result":{}}`)
    }
  })

  test('405 - other methods are refused with the allowed ones', async () => {
    for (const method of ['PUT', 'PATCH', 'OPTIONS', 'HEAD']) {
      const response = await fetch(host.url, { method })
      expect(response.status, method).toBe(405)
      expect(response.headers.get('allow'), method).toBe('GET, POST')
      await response.text()
    }
  })

  test('M4 - notifications and responses are 202 without a body; a request method without id is refused and not executed', async () => {
    for (const body of [
      '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      '{"jsonrpc":"2.0","method":"notifications/unheard_of","params":{"a":1}}',
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":55}}',
      '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
      '{"jsonrpc":"2.0","id":3,"result":{}}',
      '{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"no"}}',
    ]) {
      const answer = await host.post(body)
      expect(answer.status, body).toBe(202)
      expect(answer.text, body).toBe('')
    }
    for (const method of ['tools/call', 'tools/list', 'initialize', 'ping', 'resources/read', 'tasks/get']) {
      const params = { name: 'queue_send', arguments: { channel: 'q', body: 'x' } }
      const answer = await host.post({ jsonrpc: '2.0', method, params })
      expect(answer.status, method).toBe(400)
      expect(rpc(answer), method).toMatchObject({ id: null, error: { code: -32600 } })
    }
    expect(await host.user.channels.list()).toEqual([])
  })
})
