import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'

import type { AgentName, OfficialAgents } from './agents/process.ts'
import type { Conversation } from './conversations.ts'
import { CONVERSATIONS } from './conversations.ts'
import { DIRECT_ERRORS } from './direct-errors.ts'
import type { Exchange } from './exchange.ts'
import { answerProblems, recordExchanges } from './exchanges.ts'
import type { Gateway } from './gateway.ts'
import { beforeOfficial, counted, gatewayUrl, registerOfficial } from './gateway.ts'
import type { ClientName } from './clients/connect.ts'
import { CONNECT } from './clients/connect.ts'
import { hasReference, improved, reference } from './reference.ts'
import { comparable, errorCodes, errorMessages } from './view.ts'

// Each client holds each conversation with each agent twice: once with the agent itself, and once with the gateway, given
// nothing but the gateway's URL of the agent. It must see the same.

const AGENTS = ['v10', 'both', 'plain', 'v03'] as const satisfies readonly AgentName[]
const CLIENTS = ['1.0', 'rest', 'legacy', '0.3'] as const satisfies readonly ClientName[]

let agents: OfficialAgents
let gateway: Gateway
beforeOfficial(async (started) => {
  ;({ agents, gateway } = started)
  for (const agent of AGENTS) await registerOfficial(gateway.http, agents, agent)
})

const known = new Map<string, Promise<unknown>>()

/** What a client sees of an agent without a gateway; computed once. */
function direct(client: ClientName, agent: AgentName, conversation: Conversation): Promise<unknown> {
  const key = `${client} ${agent} ${conversation.name}`
  const view = known.get(key) ?? hold(conversation, client, agents.url(agent))
  known.set(key, view)
  return view
}

async function hold(conversation: Conversation, client: ClientName, url: string): Promise<unknown> {
  return comparable(await conversation.hold(await CONNECT[client](url), agents))
}

/** Returns the calls among the exchanges, without the requests for cards. */
function callsOf(agent: AgentName, made: readonly Exchange[]): readonly Exchange[] {
  const base = `${gateway.http}/a2a/${agent}`
  return made.filter(({ url }) => url.startsWith(base) && !url.endsWith('/.well-known/agent-card.json'))
}

test.each(DIRECT_ERRORS)(
  'official clients - client %s and agent %s understand each other without a gateway',
  async (client, agent, expected) => {
    const errors: Record<string, unknown> = {}
    for (const conversation of CONVERSATIONS) {
      const codes = errorCodes(await direct(client, agent, conversation))
      if (codes.length > 0) errors[conversation.name] = codes
    }
    expect(errors).toEqual(expected)
  },
)

let exchanges: ReturnType<typeof recordExchanges>
beforeEach(() => {
  exchanges = recordExchanges()
})
afterEach(() => vi.restoreAllMocks())

describe.each(CLIENTS)('client %s', (client) => {
  describe.each(AGENTS)('agent %s', (agent) => {
    let counter = 0
    beforeAll(async () => {
      counter = await counted(gateway.api, 'broker_a2a_requests_total', agent)
    })

    const held = CONVERSATIONS.filter((conversation) => hasReference(client, agent, conversation))
    test.each(held)('official clients - $name', async (conversation) => {
      const [byClient, ofAgent] = reference(client, agent, conversation)
      // The agent of A2A 0.3 has no HTTP+JSON interface: the client must see what a client of JSON-RPC sees of the gateway.
      const isOfGateway = client === 'rest' && agent === 'v03'
      const expected = isOfGateway
        ? await hold(conversation, '1.0', gatewayUrl(gateway.http, agent))
        : improved(client, agent, conversation, await direct(byClient, ofAgent, conversation))
      await agents.takeSeen()
      counter += callsOf(agent, exchanges.take()).length

      const view = await hold(conversation, client, gatewayUrl(gateway.http, agent))

      // Errors of the two bindings have different members.
      const compared = (shown: unknown): unknown => (isOfGateway ? errorMessages(shown) : shown)
      expect(compared(view)).toEqual(compared(expected))
      const made = exchanges.take()
      expect(made.filter(({ url }) => url.startsWith(agents.url(agent).slice(0, -1)))).toEqual([])
      const calls = callsOf(agent, made)
      const found = await Promise.all(
        calls.map(async (call) => ({ [`${call.url} ${call.request}`]: await answerProblems(call) })),
      )
      expect(found.filter((each) => Object.values(each).some(({ length }) => length > 0))).toEqual([])
      const seen = await agents.takeSeen()
      expect(seen.filter(({ throughGateway }) => !throughGateway)).toEqual([])
      counter += calls.length
    })

    test('official clients - the gateway counts every call', async () => {
      await expect.poll(() => counted(gateway.api, 'broker_a2a_requests_total', agent)).toBe(counter)
    })
  })
})
