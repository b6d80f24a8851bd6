import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { Answer } from '../support/agent.ts'
import { postJson, register, silent, startAgent } from '../support/agent.ts'
import { serve } from '../support/server.ts'
import type { Gateway } from './gateway.ts'
import { startGateway } from './gateway.ts'
import { SCHEMA_03 } from './strict/schema-0.3.ts'
import { SCHEMA_10 } from './strict/schema-1.0.ts'
import { problems } from './strict/validate.ts'

// The bytes that clients in other languages depend on: the SDKs for Go and Python are stricter than the one for JavaScript.

let gateway: Gateway
/** Gives agents a second. */
let hasty: Gateway
beforeAll(async () => {
  ;[gateway, hasty] = await Promise.all([
    startGateway(),
    startGateway({ connectors: { a2a: { defaultTimeoutSeconds: 1 } } }),
  ])
})
afterAll(() => Promise.all([gateway[Symbol.asyncDispose](), hasty[Symbol.asyncDispose]()]))

let registered = 0

async function agentAt(url: string, card: object = {}, { http } = gateway): Promise<string> {
  const id = `pinned-${++registered}`
  await register(http, { name: id, url, capabilities: { streaming: true }, ...card, agent_id: id })
  return id
}

async function agentWith(answer: Answer, card: object = {}, at = gateway): Promise<string> {
  const { url } = await startAgent(answer)
  return agentAt(url, card, at)
}

interface Answered {
  readonly status: number
  readonly contentType: string | null
  readonly text: string
}

async function post(
  path: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
  { http } = gateway,
): Promise<Answered> {
  const response = await fetch(`${http}/a2a/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
  const contentType = response.headers.get('content-type')
  return { status: response.status, contentType, text: await response.text() }
}

const V10 = { 'a2a-version': '1.0' }
const V03 = { 'a2a-version': '0.3' }

function call(
  method: string,
  id = '1',
  params = '{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}',
): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`
}

/** JSON that changes if anybody parses and prints it. */
const ODD =
  '{"z":1, "task":{"status":{"state":"TASK_STATE_WORKING"},"id":"t"},"n":12345678901234567890.10,"n":1,"\\u00e4":"ä"}'

const odd: Answer = ({ method }, response) => {
  const text = `{ "result" : ${ODD},"jsonrpc":"2.0","id":"of the agent" }`
  if (!/Stream|stream|Subscribe/.test(method)) {
    response.setHeader('content-type', 'application/json')
    response.end(text)
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(`event: odd\nid: 7\ndata: ${text}\n\n`)
}

const JSON_TYPE = expect.stringMatching(/^application\/json\b/)

describe.each([
  ['1.0', V10, 'SendMessage', 'SendStreamingMessage', 'SubscribeToTask'],
  ['0.3', V03, 'message/send', 'message/stream', 'tasks/resubscribe'],
] as const)('A2A %s', (wire, version, send, stream, subscribe) => {
  test.each(['1', '"a string"', '"ü☃\\u2028"', '9007199254740993', '-3'])(
    'wire - a result is the bytes of the agent, with the id %s of the caller',
    async (id) => {
      const agent = await agentWith(odd, { a2a: { wire } })
      const answered = await post(agent, call(send, id), version)
      expect(answered).toEqual({
        status: 200,
        contentType: JSON_TYPE,
        text: `{"jsonrpc":"2.0","id":${id},"result":${ODD}}`,
      })
    },
  )

  test.each([stream, subscribe])('wire - %s answers with lines of data and comments only', async (method) => {
    const agent = await agentWith(odd, { a2a: { wire } })
    const { status, contentType, text } = await post(agent, call(method, '"ü☃"'), version)
    expect([status, contentType]).toEqual([200, expect.stringMatching(/^text\/event-stream\b/)])
    const frames = text.split('\n\n').filter((frame) => frame !== '' && !frame.startsWith(':'))
    expect(frames).toEqual([`data: {"jsonrpc":"2.0","id":"ü☃","result":${ODD}}`])
  })

  test('wire - extensions are asked for and confirmed with the headers of the version', async () => {
    const name = wire === '1.0' ? 'a2a-extensions' : 'x-a2a-extensions'
    const agent = await startAgent((call, response) => {
      response.setHeader(name, 'https://ext.example/a')
      response.setHeader('x-secret', 'of the agent')
      return odd(call, response)
    })
    const id = await agentAt(agent.url, { a2a: { wire } })
    for (const method of [send, stream]) {
      const response = await fetch(`${gateway.http}/a2a/${id}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...version, [name]: 'https://ext.example/a, b' },
        body: call(method),
      })
      await response.text()
      expect(response.headers.get(name)).toBe('https://ext.example/a')
      expect(response.headers.get('x-secret')).toBeNull()
    }
    expect(agent.asked.map(({ headers }) => headers[name])).toEqual(Array(2).fill('https://ext.example/a, b'))
  })

  test('wire - one slash after the agent is accepted, as clients append it', async () => {
    const agent = await agentWith(odd, { a2a: { wire } })
    expect(await post(`${agent}/`, call(send), version)).toEqual(await post(agent, call(send), version))
    expect((await post(`${agent}//`, call(send), version)).status).toBe(404)
  })

  test('wire - the agent gets the version in a header, even if the caller did not send it', async () => {
    const agent = await startAgent(odd)
    const id = await agentAt(agent.url, { a2a: { wire } })
    await post(id, call(send), { 'a2a-version': `${wire}.7` })
    await post(wire === '1.0' ? id : `${id}/v0.3`, call(send))
    await post(`${id}?A2A-Version=${wire}`, call(send))
    expect(agent.asked.map(({ headers }) => headers['a2a-version'])).toEqual([wire, wire, wire])
  })
})

const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo'

interface Failure {
  readonly name: string
  readonly code: number
  readonly reason: string
  readonly domain?: string
  readonly answer?: Answer
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly agent?: string
}

const A2A_DOMAIN = 'a2a-protocol.org'

/** The errors of the gateway itself that a caller of a known method can have. */
const FAILURES: readonly Failure[] = [
  { name: 'an unknown agent', agent: 'nobody', code: -32603, reason: 'AGENT_NOT_FOUND' },
  { name: 'an agent that is gone', code: -32603, reason: 'AGENT_UNREACHABLE' },
  { name: 'an agent that is late', answer: silent, code: -32603, reason: 'AGENT_TIMEOUT' },
  {
    name: 'an agent that answers with text',
    answer: (_, response) => void response.end('hello'),
    code: -32006,
    reason: 'INVALID_AGENT_RESPONSE',
    domain: A2A_DOMAIN,
  },
  {
    name: 'an agent that answers elsewhere',
    answer: (_, response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    code: -32006,
    reason: 'INVALID_AGENT_RESPONSE',
    domain: A2A_DOMAIN,
  },
]

function errorOf(text: string): unknown {
  return (JSON.parse(text) as { error: unknown }).error
}

function details(reason: string, domain: string): unknown {
  const info = expect.objectContaining({ '@type': ERROR_INFO, reason, domain })
  return expect.toSatisfy((data: unknown) => {
    expect(data).toEqual(expect.arrayContaining([info]))
    for (const each of data as readonly { readonly '@type': unknown; readonly metadata?: object }[]) {
      expect(each['@type']).toMatch(/^type\.googleapis\.com\/google\.rpc\./)
      for (const value of Object.values(each.metadata ?? {})) expect(value).toBeTypeOf('string')
    }
    return true
  })
}

async function failing({ agent, answer }: Failure, wire: string, at: Gateway): Promise<string> {
  if (agent !== undefined) return agent
  const card = { a2a: { wire } }
  return answer === undefined ? agentAt('http://127.0.0.1:1/', card, at) : agentWith(answer, card, at)
}

describe('errors of the gateway', () => {
  const unknownVersion = {
    code: -32009,
    message: expect.any(String),
    data: details('VERSION_NOT_SUPPORTED', A2A_DOMAIN),
  }

  test.each(FAILURES)('wire - $name: HTTP 200 and an array of details', async (failure) => {
    const { code, reason, domain = 'signalbox' } = failure
    const expected = { code, message: expect.any(String), data: details(reason, domain) }
    const at = failure.answer === silent ? hasty : gateway
    for (const [wire, headers, methods] of [
      ['1.0', V10, ['SendMessage', 'SendStreamingMessage', 'SubscribeToTask', 'GetTask']],
      ['0.3', V03, ['message/send', 'tasks/get']],
    ] as const) {
      const agent = await failing(failure, wire, at)
      const answers = await Promise.all(methods.map((method) => post(agent, call(method, '"e"'), headers, at)))
      for (const { status, contentType, text } of answers) {
        // A stream of A2A 1.0 that cannot begin is refused with JSON.
        expect([status, contentType]).toEqual([200, JSON_TYPE])
        expect(JSON.parse(text)).toMatchObject({ jsonrpc: '2.0', id: 'e' })
        expect(errorOf(text)).toEqual(expected)
      }
      if (wire === '1.0') continue
      const streamed = await post(agent, call('message/stream', '"e"'), headers, at)
      // The SDK for Python of A2A 0.3 reads only event streams.
      expect([streamed.status, streamed.contentType]).toEqual([200, expect.stringMatching(/^text\/event-stream\b/)])
      const frames = streamed.text.split('\n\n').filter((frame) => frame !== '' && !frame.startsWith(':'))
      expect(frames).toHaveLength(1)
      expect(errorOf(frames[0]!.replace('data: ', ''))).toEqual(expected)
    }
  })

  test('wire - a version that is not served: the versions that are', async () => {
    const agent = await agentWith(odd)
    for (const method of ['SendMessage', 'SendStreamingMessage']) {
      const { status, contentType, text } = await post(agent, call(method), { 'a2a-version': '2.0' })
      expect([status, contentType]).toEqual([200, JSON_TYPE])
      expect(errorOf(text)).toEqual(unknownVersion)
    }
  })

  test('wire - what is not JSON-RPC is refused with HTTP 200', async () => {
    const agent = await agentWith(odd)
    for (const [body, code] of [
      ['{', -32700],
      [`[${call('GetTask')}]`, -32600],
      [call('GetTask', '1.5'), -32600],
    ] as const) {
      const { status, contentType, text } = await post(agent, body, V10)
      expect([status, contentType]).toEqual([200, JSON_TYPE])
      expect(errorOf(text)).toMatchObject({ code })
    }
  })
})

test('wire - a stream of 0.3 can be resumed without a version in the request', async () => {
  const agent = await agentWith(odd, { a2a: { wire: '0.3' } })
  const { contentType, text } = await post(agent, call('tasks/resubscribe'))
  expect(contentType).toMatch(/^text\/event-stream\b/)
  expect(text).toContain(`data: {"jsonrpc":"2.0","id":1,"result":${ODD}}\n\n`)
})

test('wire - without official calls no agent executes a stream whose answer could not be delivered', async () => {
  const off = await serve({ connectors: { a2a: { native: 'off' } } })
  const agent = await startAgent(odd)
  await register(off.http.url, { agent_id: 'no-streams', name: 'no-streams', url: agent.url })
  for (const method of ['SendStreamingMessage', 'SubscribeToTask', 'tasks/resubscribe']) {
    const response = await postJson(`${off.http.url}/a2a/no-streams`, JSON.parse(call(method)), V10)
    expect(await response.json()).toMatchObject({ id: 1, error: { code: -32601 } })
  }
  expect(agent.asked).toEqual([])
})

describe('cards', () => {
  const CARDS = {
    '1.0': {
      name: 'new',
      description: 'speaks 1.0',
      version: '1',
      supportedInterfaces: [{ url: 'http://127.0.0.1:1/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
      capabilities: { streaming: true },
      securitySchemes: { key: { apiKeySecurityScheme: { location: 'header', name: 'x-key' } } },
      securityRequirements: [{ schemes: { key: { list: [] } } }],
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [{ id: 's', name: 'S', description: 'does it', tags: ['t'] }],
    },
    '0.3': {
      name: 'old',
      description: 'speaks 0.3',
      version: '1',
      protocolVersion: '0.3.0',
      preferredTransport: 'JSONRPC',
      capabilities: { streaming: true, stateTransitionHistory: true },
      supportsAuthenticatedExtendedCard: true,
      securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'x-key' } },
      security: [{ key: [] }],
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain'],
      skills: [{ id: 's', name: 'S', description: 'does it', tags: ['t'] }],
    },
    bare: { name: 'bare' },
  }

  test.each(Object.keys(CARDS) as (keyof typeof CARDS)[])(
    'wire - the card of the agent %s can be read by strict parsers of both versions',
    async (name) => {
      const id = await agentAt('http://127.0.0.1:1/', CARDS[name])
      const card = async (headers: Readonly<Record<string, string>> = {}): Promise<unknown> => {
        const response = await fetch(`${gateway.http}/a2a/${id}/.well-known/agent-card.json`, { headers })
        expect([response.status, response.headers.get('content-type')]).toEqual([200, JSON_TYPE])
        expect(response.headers.get('vary')).toMatch(/A2A-Version/i)
        return response.json()
      }
      const pure = await card(V10)
      expect(problems(SCHEMA_10, 'AgentCard', pure)).toEqual([])
      expect(pure).toMatchObject({
        supportedInterfaces: expect.arrayContaining([
          { url: `${gateway.http}/a2a/${id}`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        ]),
      })
      for (const superset of [await card(), await card(V03)]) {
        expect(problems(SCHEMA_03, 'AgentCard', superset)).toEqual([])
        expect(superset).toMatchObject({ url: `${gateway.http}/a2a/${id}/v0.3`, protocolVersion: '0.3.0' })
      }
    },
  )
})
