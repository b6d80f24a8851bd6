import * as fc from 'fast-check'
import { cases } from '@signalbox/testkit/property-cases'
import { expect, test } from 'vitest'

import { always, result, startAgent } from './agents.ts'
import { messageSend, openGateway } from './gateway-host.ts'

test('A4, GW-1, CODE-6 - verbatim: a request of any method reaches the agent byte for byte, and its result returns unchanged', async () => {
  const host = await openGateway()
  const agent = await startAgent()
  await host.register('echo-agent', agent.url)
  for (const method of ['message/send', 'tasks/get', 'agent/ownMethod', '__proto__']) {
    const body = ` { "params":{"z":1, "a":"h\\u00e4llo \u{1f600}","z":2}, "id" : "x",\n"method":"${method}","jsonrpc":"2.0" }`
    const answer = await host.post('echo-agent', body)
    expect(answer.text).toBe(`{"jsonrpc":"2.0","id":"x","result":${body.trim()}}`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.headers.get('content-length')).toBe(String(Buffer.byteLength(answer.text)))
    expect(agent.asked.at(-1)?.body).toBe(body)
  }
  expect(host.failures).toEqual([])
})

test("A4 - verbatim: big numbers, the order of keys, duplicate keys, blanks and escapes of a result are the agent's", async () => {
  const host = await openGateway()
  const texts = [
    '{"n":1152921504606846976,"m":-0.0,"e":1E400,"b":10.50}',
    '{"b":1,"a":2,"2":3,"1":4}',
    '{"a":1,"a":{"a":[2]},"__proto__":null,"constructor":{"prototype":1}}',
    '[ 1 ,\t2,\r\n 3 ]',
    '"\\ud83d\\ude00 \\ud800 \\/ é 漢 \u{1f680} \u2028"',
    'null',
    'false',
    '0',
    '""',
    '{}',
  ]
  const agent = await startAgent()
  await host.register('agent-1', agent.url)
  for (const text of texts) {
    agent.script = result(text)
    expect((await host.post('agent-1', messageSend(7))).text).toBe(`{"jsonrpc":"2.0","id":7,"result":${text}}`)
  }
})

/** JSON that nobody would print so: numbers, escapes, blanks and keys that change when it is parsed and printed again. */
const { oddJson } = fc.letrec<{ oddJson: string; array: string; object: string }>((tie) => ({
  oddJson: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom('1.0', '-0', '1E2', '12345678901234567890', '"\\u0041"', '"\\/"', '"é"', 'null'),
    tie('array'),
    tie('object'),
  ),
  array: fc.array(tie('oddJson'), { maxLength: 3 }).map((items) => `[ ${items.join(' ,')}]`),
  object: fc
    .array(fc.tuple(fc.constantFrom('"b"', '"a"', '"1"', '"result"', '"__proto__"'), tie('oddJson')), { maxLength: 3 })
    .map((members) => `{${members.map(([key, value]) => `${key} : ${value}`).join(', ')}}`),
}))

test('A4 - verbatim: any JSON in any envelope of the agent returns unchanged', async () => {
  const host = await openGateway()
  const agent = await startAgent()
  await host.register('agent-1', agent.url)
  const blank = fc.stringMatching(/^[ \t\r\n]{0,3}$/)
  const member = fc.constantFrom(
    '"jsonrpc":"2.0"',
    '"id":"other"',
    '"id":null',
    '"x":{"result":1,"error":{}}',
    '"re\\"sult":2',
  )
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.json({ maxDepth: 4 }), oddJson),
      fc.array(member, { maxLength: 4 }),
      blank,
      async (json, members, pad) => {
        const envelope = [...members, '"jsonrpc":"2.0"', `"result"${pad}:${pad}${json}${pad}`].join(`,${pad}`)
        agent.script = always(`${pad}{${envelope}}${pad}`)
        const answer = await host.post('agent-1', messageSend('i'))
        expect(answer.text).toBe(`{"jsonrpc":"2.0","id":"i","result":${json.trim()}}`)
      },
    ),
    { numRuns: cases(60), seed: 20 },
  )
})

test("A4, RPC-2 - verbatim: the response has the caller's id, with any id from the agent", async () => {
  const host = await openGateway()
  const agent = await startAgent()
  await host.register('agent-1', agent.url)
  for (const envelope of ['"id":999,', '"id":null,', '', '"id":{"a":1},', '"id":"\\u0000",']) {
    agent.script = always(`{"jsonrpc":"2.0",${envelope}"result":1}`)
    for (const id of ['9007199254740993', '-0', '"9007199254740993"', '"\\u00e9\\""']) {
      const body = `{"jsonrpc":"2.0","id":${id},"method":"m"}`
      expect((await host.post('agent-1', body)).text).toBe(`{"jsonrpc":"2.0","id":${id},"result":1}`)
    }
  }
})

test("A4, A3 - verbatim: an agent's own error keeps code, message and data, with any status", async () => {
  const host = await openGateway()
  const agent = await startAgent()
  await host.register('agent-1', agent.url)
  const error = '{"message":"n\\u00f6","data":{"n":1152921504606846976,"n":2},"code":-32001}'
  for (const status of [200, 201, 302, 400, 404, 418, 429, 500, 501]) {
    agent.script = always(`{"jsonrpc":"2.0","id":5,"error":${error}}`, status, { location: 'http://127.0.0.1:1/' })
    expect((await host.post('agent-1', messageSend('me'))).text).toBe(`{"jsonrpc":"2.0","id":"me","error":${error}}`)
  }
  expect(new Set(host.finished.map(({ errorCode }) => errorCode))).toEqual(new Set(['agent']))
})

test('A4 - verbatim: a mebibyte of text in many scripts passes both ways', async () => {
  const host = await openGateway()
  const agent = await startAgent()
  await host.register('echo-agent', agent.url)
  const text = 'ж漢é\u{1f680}a\\n'.repeat(80_000)
  const body = `{"jsonrpc":"2.0","id":1,"method":"m","params":{"text":"${text}","n":1152921504606846976}}`
  expect(Buffer.byteLength(body)).toBeGreaterThan(1_048_576)
  const answer = await host.post('echo-agent', body)
  expect(answer.text === `{"jsonrpc":"2.0","id":1,"result":${body}}`).toBe(true)
})
