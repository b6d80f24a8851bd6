import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { callAgent, listed, postJson, register } from './support/agent.ts'
import { PATIENT, serveNode, startNats } from './support/nodes.ts'
import type { SdkAgent } from './support/sdk-agent.ts'
import { openSdkAgent } from './support/sdk-agent.ts'
import { serve } from './support/server.ts'

/** Three probes in 2 s. */
const SHORT = { connectors: { a2a: { agentTtlSeconds: 2 } } }

interface Shown {
  readonly agent_id: string
  readonly probe?: { readonly status: string; readonly last_probe: string; readonly error?: string }
}

async function statusOf(api: string, agentId: string): Promise<Shown | undefined> {
  const { data } = (await (await fetch(`${api}/api/agents`)).json()) as { data: { items: Shown[] } }
  return data.items.find(({ agent_id: id }) => id === agentId)
}

async function cardOf(base: string, agentId: string): Promise<Record<string, unknown>> {
  return (await (await fetch(`${base}/agents/${agentId}`)).json()) as Record<string, unknown>
}

function probes(agent: SdkAgent) {
  return agent.log.filter(({ method }) => method === 'GET')
}

test('R20 - agent probes - an unmodified agent is registered by the URL of its card, and can be called', async () => {
  const agent = await openSdkAgent()
  const { http } = await serve()
  const card = await register(http.url, { agent_card_url: agent.cardUrl })
  expect(card).toMatchObject({
    agent_id: 'shouting',
    name: 'Shouting',
    url: agent.url,
    agent_card_url: agent.cardUrl,
    a2a: { liveness: 'probe' },
  })
  const message = { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'hello' }] }
  expect(JSON.stringify(await callAgent(http.url, 'shouting', 'message/send', { message }))).toContain('HELLO')
})

test(
  'R20 - agent probes - an agent lives while its card can be read, and its changes are followed',
  PATIENT,
  async () => {
    const agent = await openSdkAgent()
    const { http, api } = await serve(SHORT)
    await register(http.url, { agent_card_url: agent.cardUrl, agent_id: 'probed' })
    // The first probe reads the whole card, the others ask by its ETag.
    await until(() => probes(agent).some(({ headers }) => headers['if-none-match'] !== undefined))
    const before = probes(agent).length
    await until(() => probes(agent).length >= before + 4)
    expect(await listed(http.url)).toEqual(['probed'])
    expect((await statusOf(api.url, 'probed'))?.probe).toEqual({ status: 'ok', last_probe: expect.any(String) })

    agent.change({ description: 'Shouts louder' })
    await until(async () => (await cardOf(http.url, 'probed'))['description'] === 'Shouts louder')
    expect(await cardOf(http.url, 'probed')).toMatchObject({ agent_id: 'probed', a2a: { liveness: 'probe' } })

    agent.stop()
    await until(async () => (await statusOf(api.url, 'probed'))?.probe?.status === 'failing')
    expect((await statusOf(api.url, 'probed'))?.probe?.error).toBe('no connection to the agent (ECONNREFUSED)')
    await until(async () => (await listed(http.url)).length === 0)
  },
)

test('R20 - agent probes - heartbeats are accepted and not needed, and deregistration works as for others', async () => {
  const agent = await openSdkAgent()
  const { http } = await serve()
  await register(http.url, { agent_card_url: agent.cardUrl, agent_id: 'probed' })
  expect((await postJson(`${http.url}/agents/heartbeat`, { agent_id: 'probed' })).status).toBe(200)
  expect((await postJson(`${http.url}/agents/deregister`, { agent_id: 'probed' })).status).toBe(200)
  expect(await listed(http.url)).toEqual([])
})

test('agent probes - a card URL that cannot be used is refused with the reason', async () => {
  let answer: [number, Record<string, string>, string] = [404, {}, '']
  const agent = await openSdkAgent({
    guard(_request, response) {
      response.writeHead(answer[0], answer[1]).end(answer[2])
      return true
    },
  })
  const { http } = await serve({ connectors: { a2a: { agentUrlDeny: ['10.0.0.0/8'] } } })
  const refusal = async (body: object): Promise<string> => {
    const response = await postJson(`${http.url}/agents/register`, body)
    expect(response.status).toBe(400)
    return ((await response.json()) as { message: string }).message
  }
  const byUrl = { agent_card_url: agent.cardUrl }
  expect(await refusal(byUrl)).toContain('the agent answered with HTTP 404')
  answer = [302, { location: 'http://10.0.0.1/' }, '']
  expect(await refusal(byUrl)).toContain('the agent answered with HTTP 302')
  answer = [200, {}, '<html>']
  expect(await refusal(byUrl)).toContain('the answer is not an agent card')
  answer = [200, {}, ' '.repeat(200_000)]
  expect(await refusal(byUrl)).toContain('more than 131072 bytes')
  answer = [200, { 'content-encoding': 'gzip' }, 'x']
  expect(await refusal(byUrl)).toContain('it answered with the encoding gzip')
  answer = [200, {}, JSON.stringify({ name: '天気', url: agent.url })]
  expect(await refusal(byUrl)).toContain('send agent_id')
  answer = [200, {}, JSON.stringify({ name: 'One', url: 'http://10.0.0.1/' })]
  expect(await refusal(byUrl)).toContain('url is "http://10.0.0.1/"')
  expect(await refusal({ agent_card_url: 'http://10.0.0.1/card' })).toContain(
    'agent_card_url is "http://10.0.0.1/card"',
  )
  expect(await refusal({ agent_card_url: 'file:///etc/passwd' })).toContain('agent_card_url')
  expect(await refusal({ ...byUrl, name: 'Mine' })).toContain('name')
  expect(await refusal({ agent_id: 'a1', name: 'A', url: agent.url, a2a: { liveness: 'probe' } })).toContain(
    'agent_card_url is missing',
  )
})

test('agent probes - an id that is made from a name replaces no other agent', async () => {
  const [one, other] = [await openSdkAgent(), await openSdkAgent()]
  const { http } = await serve()
  await register(http.url, { agent_card_url: one.cardUrl })
  await register(http.url, { agent_card_url: one.cardUrl })
  const refused = await postJson(`${http.url}/agents/register`, { agent_card_url: other.cardUrl })
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('agent_id')])
})

test(
  'agent probes - one node probes the agent; when it stops, another node continues',
  { timeout: 40_000 },
  async () => {
    const agent = await openSdkAgent()
    const nats = await startNats()
    const first = await serveNode(nats, { connectors: { a2a: { agentTtlSeconds: 3 } } })
    const second = await serveNode(nats, { connectors: { a2a: { agentTtlSeconds: 3 } } })
    await register(first.http.url, { agent_card_url: agent.cardUrl, agent_id: 'probed' })
    await until(async () => (await listed(second.http.url)).length === 1)
    const begin = performance.now()
    await until(() => probes(agent).length >= 5)
    // The registration, and then a probe in each second: two nodes would take half the time.
    expect(performance.now() - begin).toBeGreaterThan(3_400)
    await until(async () => (await statusOf(second.api.url, 'probed'))?.probe?.status === 'ok')

    await first.close()
    const taken = probes(agent).length
    await until(() => probes(agent).length >= taken + 3)
    expect(await listed(second.http.url)).toEqual(['probed'])
  },
)

test(
  'agent probes - an agent whose card moves to another origin does not get its credentials there',
  PATIENT,
  async () => {
    const agent = await openSdkAgent()
    const thief = await openSdkAgent()
    const keyFile = join(testFolder(), 'seal.key')
    const { http, api } = await serve({ ...SHORT, webhooks: { keyFile } })
    const credentials = { bearer: 'secret' }
    await register(http.url, { agent_card_url: agent.cardUrl, agent_id: 'probed', a2a: { credentials } })
    agent.change({
      supportedInterfaces: [{ url: thief.url, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' }],
    })
    await until(async () => (await statusOf(api.url, 'probed'))?.probe?.error?.includes('another origin') === true)
    await callAgent(http.url, 'probed', 'message/send')
    expect(thief.log).toEqual([])
    expect(agent.calls()[0]?.headers.authorization).toBe('Bearer secret')
  },
)

test('agent probes - AGENTS_FILE registers the agents in it, removes others, and is read again', PATIENT, async () => {
  const [one, other] = [await openSdkAgent(), await openSdkAgent()]
  const file = join(testFolder(), 'agents.yaml')
  writeFileSync(file, `- agent_card_url: ${one.cardUrl}\n`)
  const { http } = await serve({ agentsFile: file })
  await until(async () => (await listed(http.url)).length === 1)
  expect(await cardOf(http.url, 'shouting')).toMatchObject({ registered_by: 'agents-file', url: one.url })
  await register(http.url, { agent_id: 'mine', name: 'Mine', url: one.url })

  writeFileSync(file, JSON.stringify([{ agent_card_url: other.cardUrl, agent_id: 'other' }]))
  await until(async () => (await listed(http.url)).join() === 'mine,other')

  // An invalid file changes nothing.
  writeFileSync(file, JSON.stringify([{ agent_card_url: 'ftp://x' }]))
  const failure = await serve({ agentsFile: file }).catch((error: unknown) => error)
  expect(String(failure)).toContain('agentsFile')
  expect(await listed(http.url)).toEqual(['mine', 'other'])
})
