import { expect, test } from 'vitest'

import { register } from '../support/agent.ts'
import type { AgentName, OfficialAgents } from './agents/process.ts'
import type { ClientName } from './clients/connect.ts'
import { CONNECT } from './clients/connect.ts'
import { CONVERSATIONS } from './conversations.ts'
import type { Gateway } from './gateway.ts'
import { beforeOfficial, gatewayUrl, registerOfficial } from './gateway.ts'
import { hasReference, improved, reference } from './reference.ts'
import { comparable, outcome } from './view.ts'

// Agents whose registration does not say which version they speak: the gateway finds out with the first call.

let agents: OfficialAgents
let gateway: Gateway
beforeOfficial((started) => {
  ;({ agents, gateway } = started)
})

let registered = 0

async function undeclared(agent: AgentName): Promise<string> {
  const id = `undeclared-${++registered}`
  const capabilities = { streaming: true, pushNotifications: true, extendedAgentCard: true }
  await register(gateway.http, { agent_id: id, name: id, url: agents.url(agent), capabilities })
  return gatewayUrl(gateway.http, id)
}

const PAIRS = [
  ['1.0', 'v03'],
  ['0.3', 'v10'],
] as const satisfies readonly (readonly [ClientName, AgentName])[]

test.each(PAIRS)(
  'official clients - client %s and agent %s, which does not declare its version',
  async (client, agent) => {
    const url = await undeclared(agent)
    const expected: Record<string, unknown> = {}
    const seen: Record<string, unknown> = {}
    for (const conversation of CONVERSATIONS.filter((one) => hasReference(client, agent, one))) {
      const [byClient, ofAgent] = reference(client, agent, conversation)
      const direct = await CONNECT[byClient](agents.url(ofAgent))
      const view = comparable(await conversation.hold(direct, agents))
      expected[conversation.name] = improved(client, agent, conversation, view)
      const through = await CONNECT[client](url)
      seen[conversation.name] = comparable(await outcome(conversation.hold(through, agents)))
    }
    expect(seen).toEqual(expected)
  },
)

test.each([
  ['1.0', 'v03', 'SendStreamingMessage', 'message/stream'],
  ['0.3', 'v10', 'message/stream', 'SendStreamingMessage'],
] as const)(
  'official clients - the version of an agent is found out once: client %s, agent %s',
  async (client, agent, tried, spoken) => {
    const connected = await CONNECT[client](await undeclared(agent))
    await agents.takeSeen()
    for (let i = 0; i < 3; i++) {
      for await (const event of connected.stream({ parts: [{ text: 'message' }] })) expect(event.view).toBeDefined()
    }
    expect((await agents.takeSeen()).map(({ method }) => method)).toEqual([tried, spoken, spoken, spoken])
  },
)

const HOOK = { id: 'hook', url: 'http://127.0.0.1:9/news' }

test.each([
  ['1.0', 'v03'],
  ['rest', 'v03'],
  ['0.3', 'v10'],
  ['legacy', 'v10'],
] as const)(
  'official clients - client %s is refused the push notifications of agent %s, which it could not read',
  async (client, agent) => {
    await registerOfficial(gateway.http, agents, agent)
    const declared = gatewayUrl(gateway.http, agent)
    for (const url of [declared, await undeclared(agent)]) {
      const connected = await CONNECT[client](url)
      await agents.takeSeen()
      const message = { parts: [{ text: 'work' }], push: HOOK }
      for (const call of [connected.send(message), connected.stream(message)[Symbol.asyncIterator]().next()]) {
        expect(JSON.stringify(await outcome(call))).toMatch(/push notification/i)
      }
      const refused = { error: { name: 'PushNotificationNotSupportedError' } }
      expect(await outcome(connected.setPush('a-task', HOOK))).toMatchObject(refused)
      // An agent that does not declare its version is asked in the caller's, in which it does nothing.
      expect(await agents.takeSeen()).toHaveLength(url === declared ? 0 : 3)
    }
  },
)

test.each([
  ['v03', false, true],
  ['v10', true, false],
  ['both', true, true],
] as const)(
  'official clients - the card of agent %s promises push notifications to those who can read them',
  async (agent, to10, to03) => {
    await registerOfficial(gateway.http, agents, agent)
    const promised = async (headers: Record<string, string>): Promise<boolean> => {
      const response = await fetch(`${gatewayUrl(gateway.http, agent)}.well-known/agent-card.json`, { headers })
      const { capabilities } = (await response.json()) as { capabilities: { pushNotifications: boolean } }
      return capabilities.pushNotifications
    }
    expect([await promised({ 'a2a-version': '1.0' }), await promised({})]).toEqual([to10, to03])
  },
)
