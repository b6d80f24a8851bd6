import { NATS_SERVER, NatsServer, RequestFront } from '@signalbox/engine-nats/testing'
import { until } from '@signalbox/testkit/until'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import { listed, register, startAgent } from '../support/agent.ts'
import { PATIENT } from '../support/nodes.ts'
import { inFlight } from '../support/streams-across.ts'
import type { AgentName, OfficialAgents } from './agents/process.ts'
import { startOfficialAgents } from './agents/process.ts'
import type { OfficialClient, Result } from './clients/client.ts'
import type { ClientName } from './clients/connect.ts'
import { CONNECT } from './clients/connect.ts'
import { CONVERSATIONS } from './conversations.ts'
import type { Gateway } from './gateway.ts'
import { gatewayUrl, registerOfficial, startGateway } from './gateway.ts'
import { hasReference, improved, reference } from './reference.ts'
import { comparable, outcome } from './view.ts'

const HOLD = { parts: [{ text: 'hold' }] }

/** Opens a stream at one node that another one serves, and reads until its task works. */
async function openAcross(client: OfficialClient, at: Gateway, serving: Gateway, agent: AgentName) {
  for (;;) {
    const leave = new AbortController()
    const stream = client.stream(HOLD, leave.signal)[Symbol.asyncIterator]()
    const first = await stream.next()
    await stream.next()
    const { taskId } = first.value as Result
    if ((await inFlight(serving.api, agent)) > 0) return { taskId, stream }
    // The SDKs release the connection of a stream that is only returned when its memory is collected.
    leave.abort()
    await expect.poll(() => inFlight(at.api, agent), PATIENT).toBe(0)
  }
}

describe.skipIf(NATS_SERVER === undefined)('official clients across nodes', () => {
  let nats: NatsServer
  let agents: OfficialAgents
  let one: Gateway
  let two: Gateway
  let front: RequestFront
  beforeAll(async () => {
    ;[nats, agents] = await Promise.all([NatsServer.start(), startOfficialAgents()])
    ;[one, two] = await Promise.all([node(), node()])
    front = await RequestFront.start([one.http, two.http])
    for (const agent of ['v10', 'both', 'v03'] as const) await registerOfficial(two.http, agents, agent)
    await until(async () => (await listed(one.http)).length === 3)
  })
  afterAll(async () => {
    await front[Symbol.asyncDispose]()
    await Promise.all([one[Symbol.asyncDispose](), two[Symbol.asyncDispose]()])
    await nats[Symbol.asyncDispose]()
    agents[Symbol.dispose]()
  })

  function node(): Promise<Gateway> {
    return startGateway({ engine: 'nats', nats: { servers: [nats.url] } })
  }

  test.each([
    ['1.0', 'v10'],
    ['rest', 'v10'],
    ['1.0', 'v03'],
    ['0.3', 'v10'],
  ] as const satisfies readonly (readonly [ClientName, AgentName])[])(
    'official clients - client %s and agent %s, each request at another node, as without a gateway',
    async (client, agent) => {
      const expected: Record<string, unknown> = {}
      const seen: Record<string, unknown> = {}
      for (const conversation of CONVERSATIONS.filter((each) => hasReference(client, agent, each))) {
        const [byClient, ofAgent] = reference(client, agent, conversation)
        const [direct, through] = await Promise.all([
          CONNECT[byClient](agents.url(ofAgent)),
          CONNECT[client](gatewayUrl(front.url, agent)),
        ])
        const view = comparable(await conversation.hold(direct, agents))
        expected[conversation.name] = improved(client, agent, conversation, view)
        seen[conversation.name] = comparable(await outcome(conversation.hold(through, agents)))
      }
      expect(seen).toEqual(expected)
    },
  )

  test.each([
    ['1.0', 'v10'],
    ['rest', 'v10'],
    ['0.3', 'v10'],
  ] as const)(
    'official clients - client %s: a stream that another node serves, and a second one through that node',
    async (version, agent) => {
      const client = await CONNECT[version](gatewayUrl(one.http, agent))
      const other = await CONNECT[version](gatewayUrl(two.http, agent))
      const { taskId, stream } = await openAcross(client, one, two, agent)
      const again = other.resubscribe(taskId)[Symbol.asyncIterator]()
      expect((await again.next()).value).toMatchObject({ taskId })
      await agents.release(taskId)
      const rest = await Promise.all([stream, again].map(remaining))
      expect(rest[0]).toHaveLength(3)
      expect(rest[1]).toEqual(rest[0])
      expect(JSON.stringify(rest[0])).toMatch(/completed/i)
    },
  )

  test('official clients - events of a megabyte from an agent that another node serves', async () => {
    const text = 'ä'.repeat(500_000)
    const count = 3
    const agent = await startAgent(({ body }, response) => {
      const { id } = JSON.parse(body) as { id: unknown }
      const status = { state: 'TASK_STATE_WORKING' }
      const result = { statusUpdate: { taskId: 't', contextId: 'c', status, metadata: { text } } }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`.repeat(count))
    })
    const card = { agent_id: 'large', name: 'large', url: agent.url, capabilities: { streaming: true } }
    await register(two.http, { ...card, a2a: { wire: '1.0' } })
    await until(async () => (await listed(one.http)).includes('large'))
    for (const { http } of [one, two]) {
      const client = await CONNECT['1.0'](gatewayUrl(http, 'large'))
      const views = await remaining(client.stream(HOLD)[Symbol.asyncIterator]())
      expect(views).toHaveLength(count)
      for (const view of views) expect(view).toMatchObject({ statusUpdate: { metadata: { text } } })
    }
    await fetch(`${two.http}/agents/large`, { method: 'DELETE' })
    await until(async () => !(await listed(one.http)).includes('large'))
  })

  test('official clients - a node that stops ends the streams that it serves with an error, and the task is not lost', async () => {
    const third = await node()
    onTestFinished(() => third[Symbol.asyncDispose]())
    await expect.poll(() => listed(third.http), PATIENT).toEqual(['both', 'v03', 'v10'])
    const client = await CONNECT['1.0'](gatewayUrl(one.http, 'v10'))
    const { taskId, stream } = await openAcross(client, one, third, 'v10')
    await third[Symbol.asyncDispose]()
    await expect(remaining(stream)).rejects.toThrow(/-32603/)
    const again = client.resubscribe(taskId)[Symbol.asyncIterator]()
    expect((await again.next()).value).toMatchObject({ taskId })
    await agents.release(taskId)
    expect(JSON.stringify(await remaining(again))).toMatch(/completed/i)
  })
})

async function remaining(stream: AsyncIterator<Result>): Promise<readonly unknown[]> {
  const views: unknown[] = []
  for (;;) {
    const { done, value } = await stream.next()
    if (done === true) return views
    views.push(value.view)
  }
}
