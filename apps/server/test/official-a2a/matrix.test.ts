import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'

import type { AgentName, OfficialAgents } from './agents/process.ts'
import { startOfficialAgents } from './agents/process.ts'
import type { Conversation } from './conversations.ts'
import { CONVERSATIONS } from './conversations.ts'
import { answerProblems, recordExchanges } from './exchanges.ts'
import type { Gateway } from './gateway.ts'
import { counted, gatewayUrl, registerOfficial, startGateway } from './gateway.ts'
import type { ClientName } from './clients/connect.ts'
import { CONNECT } from './clients/connect.ts'
import { reference } from './reference.ts'
import { comparable, errorMessages } from './view.ts'

// Each client holds each conversation with each agent twice: once with the agent itself, and once with the gateway, given
// nothing but the gateway's URL of the agent. It must see the same.

const AGENTS = ['v10', 'both', 'plain', 'v03'] as const satisfies readonly AgentName[]
const CLIENTS = ['1.0', 'rest', 'legacy', '0.3'] as const satisfies readonly ClientName[]

let agents: OfficialAgents
let gateway: Gateway
beforeAll(async () => {
  ;[agents, gateway] = await Promise.all([startOfficialAgents(), startGateway()])
  for (const agent of AGENTS) await registerOfficial(gateway.http, agents, agent)
})
afterAll(async () => {
  agents[Symbol.dispose]()
  await gateway[Symbol.asyncDispose]()
})

const known = new Map<string, Promise<unknown>>()

/**
 * Returns false for a client of HTTP+JSON and an agent that has no such interface. It must see what a client of JSON-RPC sees
 * of the gateway; only the members of errors differ.
 */
function isCompared(client: ClientName, agent: AgentName): boolean {
  return client !== 'rest' || agent !== 'v03'
}

/** What the reference sees; computed once. */
function direct(client: ClientName, agent: AgentName, conversation: Conversation): Promise<unknown> {
  if (!isCompared(client, agent)) return hold(conversation, '1.0', gatewayUrl(gateway.http, agent))
  const [by, to] = reference(client, agent, conversation)
  const key = `${by} ${to} ${conversation.name}`
  const view = known.get(key) ?? hold(conversation, by, agents.url(to))
  known.set(key, view)
  return view
}

async function hold(conversation: Conversation, client: ClientName, url: string): Promise<unknown> {
  return comparable(await conversation.hold(await CONNECT[client](url), agents))
}

function isCall(url: string, agent: string): boolean {
  return url.startsWith(agent) && !url.endsWith('/.well-known/agent-card.json')
}

let exchanges: ReturnType<typeof recordExchanges>
beforeEach(() => {
  exchanges = recordExchanges()
})
afterEach(() => vi.restoreAllMocks())

describe.each(CLIENTS)('client %s', (client) => {
  describe.each(AGENTS)('agent %s', (agent) => {
    const held = CONVERSATIONS.filter(({ streams }) => agent !== 'plain' || streams !== true)
    test.each(held)('official clients - $name', async (conversation) => {
      const expected = await direct(client, agent, conversation)
      await agents.takeSeen()
      exchanges.take()
      const before = await counted(gateway.api, 'broker_a2a_requests_total', agent)

      const view = await hold(conversation, client, gatewayUrl(gateway.http, agent))

      if (isCompared(client, agent)) expect(view).toEqual(expected)
      else expect(errorMessages(view)).toEqual(errorMessages(expected))
      const made = exchanges.take()
      expect(made.filter(({ url }) => url.startsWith(agents.url(agent).slice(0, -1)))).toEqual([])
      const calls = made.filter(({ url }) => isCall(url, `${gateway.http}/a2a/${agent}`))
      const found = await Promise.all(
        calls.map(async (call) => ({ [`${call.url} ${call.request}`]: await answerProblems(call) })),
      )
      expect(found.filter((each) => Object.values(each).some(({ length }) => length > 0))).toEqual([])
      const seen = await agents.takeSeen()
      expect(seen.filter(({ throughGateway }) => !throughGateway)).toEqual([])
      const counter = async () => (await counted(gateway.api, 'broker_a2a_requests_total', agent)) - before
      await expect.poll(counter).toBe(calls.length)
    })
  })
})
