import { describe, expect, test } from 'vitest'

import { callAgent, postJson, register } from '../support/agent.ts'
import type { OfficialAgents } from './agents/process.ts'
import type { ClientName } from './clients/connect.ts'
import { CONNECT } from './clients/connect.ts'
import type { Conversation } from './conversations.ts'
import { CONVERSATIONS } from './conversations.ts'
import type { Gateway } from './gateway.ts'
import { beforeOfficial, gatewayUrl, registerOfficial } from './gateway.ts'
import { hasReference } from './reference.ts'
import { comparable } from './view.ts'

// One agent is registered twice: with all its interfaces, and with HTTP+JSON alone. Clients must see the same.

let agents: OfficialAgents
let gateway: Gateway
beforeOfficial(async (started) => {
  ;({ agents, gateway } = started)
  await registerOfficial(gateway.http, agents, 'v10')
  await register(gateway.http, { ...(await restCard()), agent_id: 'rest', url: `${agents.url('v10')}rest` })
})

interface ServedCard {
  readonly supportedInterfaces: readonly { readonly protocolBinding: string }[]
}

async function restCard(): Promise<ServedCard> {
  const card = (await (await fetch(`${agents.url('v10')}.well-known/agent-card.json`)).json()) as ServedCard
  return {
    ...card,
    supportedInterfaces: card.supportedInterfaces.filter(({ protocolBinding }) => protocolBinding === 'HTTP+JSON'),
  }
}

async function hold(conversation: Conversation, client: ClientName, agent: string): Promise<unknown> {
  const url = gatewayUrl(gateway.http, agent)
  return JSON.parse(
    JSON.stringify(comparable(await conversation.hold(await CONNECT[client](url), agents))).replaceAll(url, '#url'),
  ) as unknown
}

describe.each(['1.0', 'rest', 'legacy', '0.3'] as const)('client %s', (client) => {
  const held = CONVERSATIONS.filter((conversation) => hasReference(client, 'v10', conversation))
  test.each(held)('A30 - agents over HTTP+JSON - $name', async (conversation) => {
    expect(await hold(conversation, client, 'rest')).toEqual(await hold(conversation, client, 'v10'))
  })
})

test('agents over HTTP+JSON - calls and streams of the dialect are translated', async () => {
  const message = { kind: 'message', role: 'user', messageId: 'm1', parts: [{ kind: 'text', text: 'work' }] }
  expect(await callAgent(gateway.http, 'rest', 'message/send', { message })).toMatchObject({
    id: 1,
    result: { task: { status: { state: 'TASK_STATE_COMPLETED' } } },
  })
  const call = { jsonrpc: '2.0', id: 1, method: 'message/stream', params: { message } }
  const stream = await (await postJson(`${gateway.http}/a2a/rest`, call)).text()
  expect(stream).toContain('event: task.artifact')
  expect(stream.match(/event: task\.done/g)).toHaveLength(1)
  expect(await callAgent(gateway.http, 'rest', 'no/such')).toMatchObject({ error: { code: -32601 } })
})

test.each([
  [{ supportedInterfaces: [{ protocolBinding: 'GRPC', url: 'grpc://agent:1', protocolVersion: '1.0' }] }, 'GRPC'],
  [{ protocolVersion: '0.3.0', preferredTransport: 'GRPC' }, 'GRPC'],
  [{ protocolVersion: '0.3.0', preferredTransport: 'HTTP+JSON' }, 'HTTP+JSON of A2A 0.3'],
])('agents over HTTP+JSON - an agent that the gateway cannot call is refused, with the reason', async (card, given) => {
  const body = { agent_id: 'other', name: 'Other', url: 'http://127.0.0.1:1/', ...card }
  const answer = await postJson(`${gateway.http}/agents/register`, body)
  expect([answer.status, await answer.json()]).toMatchObject([
    400,
    {
      details: [
        { field: 'supportedInterfaces', given, allowed: expect.stringContaining('gRPC alone is not supported') },
      ],
    },
  ])
})
