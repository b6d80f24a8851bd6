import { afterAll, beforeAll, expect, test } from 'vitest'

import type { Asked, BareAgent } from '../support/agent.ts'
import { register, startAgent } from '../support/agent.ts'
import type { OfficialAgents } from './agents/process.ts'
import { startOfficialAgents } from './agents/process.ts'
import { CONNECT } from './clients/connect.ts'
import type { Gateway } from './gateway.ts'
import { gatewayUrl, registerOfficial, startGateway } from './gateway.ts'
import { SCHEMA_03 } from './strict/schema-0.3.ts'
import { SCHEMA_10 } from './strict/schema-1.0.ts'
import { problems } from './strict/validate.ts'

// What agents and clients in other languages send, as far as it differs from the SDK for JavaScript.

let gateway: Gateway
let agents: OfficialAgents
beforeAll(async () => {
  ;[gateway, agents] = await Promise.all([startGateway(), startOfficialAgents()])
  for (const agent of ['v10', 'v03'] as const) await registerOfficial(gateway.http, agents, agent)
})
afterAll(async () => {
  agents[Symbol.dispose]()
  await gateway[Symbol.asyncDispose]()
})

let registered = 0

/** Starts an agent that answers with this text as result, also to requests for a stream. */
async function agentOf(result: string, card: object): Promise<{ readonly id: string; readonly agent: BareAgent }> {
  const agent = await startAgent(({ method }, response) => {
    const streams = /stream/i.test(method)
    response.setHeader('content-type', streams ? 'text/event-stream' : 'application/json')
    const text = `{"jsonrpc":"2.0","id":1,"result":${result}}`
    response.end(streams ? `data: ${text}\n\n` : text)
  })
  const id = `habit-${++registered}`
  await register(gateway.http, { name: id, url: agent.url, capabilities: { streaming: true }, ...card, agent_id: id })
  return { id, agent }
}

async function post(path: string, body: string, version: string): Promise<string> {
  const response = await fetch(`${gateway.http}/a2a/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': version },
    body,
  })
  return response.text()
}

function resultOf(text: string): unknown {
  const [, data = text] = /^data: (.*)$/m.exec(text) ?? []
  const { result } = JSON.parse(data) as { result: unknown }
  return result
}

/** The params of a message, with the names of Protocol Buffers. */
function say(text: string, more = ''): string {
  return `{"message":{"message_id":"${text}","role":"ROLE_USER","parts":[{"text":"${text}"}]${more}}}`
}

function info(reason: string): readonly object[] {
  return [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'a2a-protocol.org' }]
}

function call(method: string, params: string): string {
  return `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`
}

/** A task as Python agents of A2A 0.3 print it: an offset instead of Z, microseconds, members that are null. */
const PYTHON_TASK =
  `{"artifacts":[{"artifactId":"a","description":null,"extensions":null,"metadata":null,"name":null,"parts":[
  {"kind":"data","data":{"n":12345678901234567890},"metadata":null},{"kind":"text","metadata":null,"text":"é"}]}],
  "contextId":"c","history":null,"id":"t","kind":"task","metadata":null,
  "status":{"message":null,"state":"completed","timestamp":"2026-01-02T03:04:05.678901+00:00"}}`.replaceAll(
    /\n\s*/g,
    '',
  )

/** A task as an agent of A2A 1.0 with another printer of protocol buffers has it: numbers that a double cannot hold. */
const TASK_10 =
  `{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED","timestamp":"2026-01-02T03:04:05.678901234Z"},
  "artifacts":[{"artifactId":"a","parts":[{"data":{"n":12345678901234567890}},{"data":[1,2]},{"text":"é"}]}]}}`.replaceAll(
    /\n\s*/g,
    '',
  )

test.each(['SendMessage', 'SendStreamingMessage'])(
  'habits - %s of a Python agent of 0.3: a strict reader of 1.0 can read the task, and no digit is lost',
  async (method) => {
    const { id } = await agentOf(PYTHON_TASK, { a2a: { wire: '0.3' } })
    const message = '{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}'
    const text = await post(id, call(method, `{"message":${message}}`), '1.0')
    const type = method === 'SendMessage' ? 'SendMessageResponse' : 'StreamResponse'
    expect(problems(SCHEMA_10, type, resultOf(text))).toEqual([])
    expect(text).toContain('{"n":12345678901234567890}')
    expect(text).toContain('2026-01-02T03:04:05.678901Z')
  },
)

test.each(['message/send', 'message/stream'])(
  'habits - %s of an agent of 1.0: a strict reader of 0.3 can read the task, and no digit is lost',
  async (method) => {
    const { id } = await agentOf(TASK_10, { a2a: { wire: '1.0' } })
    const message = '{"messageId":"m","role":"user","parts":[{"kind":"text","text":"x"}]}'
    const text = await post(id, call(method, `{"message":${message}}`), '0.3')
    expect(problems(SCHEMA_03, 'Event', resultOf(text))).toEqual([])
    expect(text).toContain('{"n":12345678901234567890}')
  },
)

test('habits - numbers and unknown members of a request: digits stay, members that 1.0 does not know do not', async () => {
  const { id, agent } = await agentOf(TASK_10, { a2a: { wire: '1.0' } })
  const params = `{"message":{"kind":"message","messageId":"m","role":"user","parts":[
    {"kind":"data","data":{"n":12345678901234567890}}],"contextId":null,"odd":1},"configuration":{"blocking":false,
    "timeout":5,"acceptedOutputModes":null},"metadata":{"big":98765432109876543210}}`
  await post(id, call('message/send', params), '0.3')
  const [{ method, body }] = agent.asked as [Asked]
  expect(method).toBe('SendMessage')
  expect(body).toContain('{"n":12345678901234567890}')
  expect(body).toContain('{"big":98765432109876543210}')
  expect(JSON.parse(body)).toMatchObject({
    params: { message: { role: 'ROLE_USER' }, configuration: { returnImmediately: true } },
  })
  expect(body).not.toMatch(/odd|timeout|blocking|kind|null/)
})

test('habits - the extended card is asked for without params, as the SDK for Python of 0.3 does', async () => {
  const card = { name: 'secret', version: '1', description: 'd', skills: [], url: 'http://127.0.0.1:1/' }
  const { id, agent } = await agentOf(JSON.stringify(card), { a2a: { wire: '0.3' } })
  for (const [method, version] of [
    ['agent/getAuthenticatedExtendedCard', '0.3'],
    ['GetExtendedAgentCard', '1.0'],
  ] as const) {
    const text = await post(id, `{"jsonrpc":"2.0","id":1,"method":"${method}"}`, version)
    expect(resultOf(text)).toMatchObject({ name: 'secret' })
    expect(text).not.toContain('127.0.0.1:1/')
  }
  expect(agent.asked.map(({ method }) => method)).toEqual(Array(2).fill('agent/getAuthenticatedExtendedCard'))
})

test('habits - the tenant of the card reaches the agent, also from clients of 0.3 that know no tenants', async () => {
  const face = { url: 'http://127.0.0.1:1/', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: 'acme' }
  const { id, agent } = await agentOf(TASK_10, { supportedInterfaces: [face] })
  for (const version of ['1.0', '0.3'] as const) {
    const client = await CONNECT[version](gatewayUrl(gateway.http, id))
    await client.send({ parts: [{ text: 'x' }] })
  }
  expect(agent.asked.map(({ method, params }) => [method, params['tenant']])).toEqual([
    ['SendMessage', 'acme'],
    ['SendMessage', 'acme'],
  ])
})

test.each(['v10', 'v03'])(
  'A42 - habits: a call without an id reaches the agent %s of an official SDK once, and its answer has the id null',
  async (agent) => {
    const message = '{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"work"}]}'
    const message10 = '{"messageId":"m","role":"ROLE_USER","parts":[{"text":"work"}]}'
    await agents.takeSeen()
    for (const [path, method, given] of [
      [agent, 'SendMessage', message10],
      [`${agent}/v0.3`, 'message/send', message],
    ] as const) {
      const text = await post(path, `{"jsonrpc":"2.0","method":"${method}","params":{"message":${given}}}`, '')
      expect(JSON.parse(text), text).toMatchObject({ id: null, result: expect.anything() as unknown })
    }
    expect(await agents.takeSeen()).toHaveLength(2)
  },
)

test.each(['v10', 'v03'])(
  'habits - a follow-up with the names of Protocol Buffers (task_id) continues the task of the agent %s',
  async (agent) => {
    const asked = resultOf(await post(agent, call('SendMessage', say('ask')), '1.0')) as { task: { id: string } }
    const followed = await post(agent, call('SendMessage', say('red', `,"task_id":"${asked.task.id}"`)), '1.0')
    expect(resultOf(followed), followed).toMatchObject({
      task: { id: asked.task.id, status: { state: 'TASK_STATE_COMPLETED' } },
    })
  },
)

test('official calls - habits: errors of an agent of 0.3 are errors of 1.0, and refused streams are JSON', async () => {
  const { id: finished } = resultOf(
    await post(
      'v03/v0.3',
      call(
        'message/send',
        '{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"work"}]}}',
      ),
      '',
    ),
  ) as { id: string }
  const message = '{"message":{"messageId":"m","role":"ROLE_USER","taskId":"none","parts":[{"text":"work"}]}}'
  for (const [method, params, code, reason] of [
    ['GetTask', '{"id":"none"}', -32_001, 'TASK_NOT_FOUND'],
    ['CancelTask', `{"id":"${finished}"}`, -32_002, 'TASK_NOT_CANCELABLE'],
    ['SendStreamingMessage', message, -32_001, 'TASK_NOT_FOUND'],
    ['SubscribeToTask', '{"id":"none"}', -32_001, 'TASK_NOT_FOUND'],
    ['SubscribeToTask', `{"id":"${finished}"}`, -32_004, 'UNSUPPORTED_OPERATION'],
  ] as const) {
    const text = await post('v03', call(method, params), '1.0')
    expect(JSON.parse(text), method).toMatchObject({ id: 1, error: { code, data: info(reason) } })
  }
  for (const [task, status] of [
    ['none', 404],
    [finished, 400],
  ] as const) {
    const response = await fetch(`${gateway.http}/a2a/v03/tasks/${task}:subscribe`, {
      headers: { 'a2a-version': '1.0' },
    })
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'application/json'])
  }
})

test('official calls - root: clients that know only the host call the agent that the setting names', async () => {
  await using host = await startGateway({ connectors: { a2a: { rootAgent: 'v10' } } })
  await registerOfficial(host.http, agents, 'v10')
  const answers = await Promise.all(
    Object.values(CONNECT).map(async (connect) => {
      const client = await connect(`${host.http}/`)
      return JSON.stringify(await client.send({ parts: [{ text: 'through the root' }] }))
    }),
  )
  for (const answer of answers) expect(answer).toContain('through the root')
})
