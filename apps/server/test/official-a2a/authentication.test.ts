import { expect, test } from 'vitest'

import type { Answer, BareAgent } from '../support/agent.ts'
import { postJson, startAgent } from '../support/agent.ts'
import { serve } from '../support/server.ts'
import { governed, issuer, trusting } from '../support/tokens.ts'
import { AUTHENTICATED as CONNECT } from './clients/authenticated.ts'
import { gatewayUrl } from './gateway.ts'
import { outcome } from './view.ts'

const one = issuer()
const HELLO = { parts: [{ text: 'hello' }] }

const TASKS = {
  '1.0': { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } },
  '0.3': { kind: 'task', id: 't', contextId: 'c', status: { state: 'completed' } },
}

function answering(version: keyof typeof TASKS): Answer {
  return ({ method, body }, response) => {
    const { id } = JSON.parse(body) as { id: unknown }
    const text = JSON.stringify({ jsonrpc: '2.0', id, result: TASKS[version] })
    const streams = /stream/i.test(method)
    response.setHeader('content-type', streams ? 'text/event-stream' : 'application/json')
    response.end(streams ? `data: ${text}\n\n` : text)
  }
}

async function registered(base: string, version: keyof typeof TASKS): Promise<BareAgent> {
  const agent = await startAgent(answering(version))
  const capabilities = { streaming: true }
  const card = { agent_id: 'guarded', name: 'guarded', url: agent.url, capabilities, a2a: { wire: version } }
  const authorization = await one.bearer('owner')
  expect((await postJson(`${base}/agents/register`, card, { authorization })).status).toBe(200)
  return agent
}

test.each([
  ['1.0', '1.0'],
  ['1.0 over HTTP+JSON', '1.0'],
  ['0.3', '0.3'],
] as const)(
  'official clients - a client of %s renews a token that is refused, as its README has it, for calls and streams',
  async (kind, version) => {
    const { http } = await serve(trusting(one))
    const agent = await registered(http.url, version)
    let renewed = 0
    const connect = () =>
      CONNECT[kind](gatewayUrl(http.url, 'guarded'), () => {
        renewed++
        return one.bearer('alice')
      })
    expect(await (await connect()).send(HELLO)).toMatchObject({ taskId: 't' })
    const events: unknown[] = []
    for await (const { view } of (await connect()).stream(HELLO)) events.push(view)
    expect(events).toEqual([TASKS[version]])
    expect(renewed).toBe(2)
    expect(agent.asked.map(({ headers }) => [headers['x-broker-caller-id'], headers.authorization])).toEqual([
      ['alice', undefined],
      ['alice', undefined],
    ])
  },
)

test.each([
  ['1.0', '1.0'],
  ['1.0 over HTTP+JSON', '1.0'],
  ['0.3', '0.3'],
] as const)(
  'official clients - a client of %s whose caller may not call the agent learns that, and no agent is asked',
  async (kind, version) => {
    const rules = [{ clients: 'alice', patterns: 'agents', actions: 'call', effect: 'deny' }, {}]
    const { http } = await serve({ ...trusting(one), ...governed(...rules) })
    const agent = await registered(http.url, version)
    const client = await CONNECT[kind](gatewayUrl(http.url, 'guarded'), () => one.bearer('alice'))
    const forbidden = /-32011|forbidden/i
    expect(JSON.stringify(await outcome(client.send(HELLO)))).toMatch(forbidden)
    const streamed = outcome(client.stream(HELLO)[Symbol.asyncIterator]().next())
    expect(JSON.stringify(await streamed)).toMatch(forbidden)
    expect(agent.asked).toEqual([])
  },
)
