import * as fc from 'fast-check'
import { AGENT_TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { expect, test } from 'vitest'

import type { BareAgent } from './support/agent.ts'
import { startAgent, withResult } from './support/agent.ts'
import { rpc } from './support/mcp.ts'
import { serve } from './support/server.ts'
import { governed, issuer, trusting } from './support/tokens.ts'

const one = issuer()

/** Somebody who calls the server. */
interface Client {
  readonly name: string
  readonly authorization: string
}

/** They may act for the owners of agents, so that nothing but the policy is in their way. */
async function client(name: string): Promise<Client> {
  return { name, authorization: await one.bearer(name, { roles: ['Admin'] }) }
}

type Outcome = 'done' | 'forbidden'

/** A way through the product to an agent: what it does, and whether it was done. */
interface Way {
  readonly name: string
  readonly action: 'call' | 'list' | 'register'
  /** `mark` goes to the agent, where the way leads to it. */
  readonly try: (base: string, agentId: string, caller: Client, mark: string) => Promise<Outcome>
}

function request(base: string, { authorization }: Client, method: string, path: string, body?: object) {
  return fetch(`${base}${path}`, {
    method,
    headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

/** A refusal of the gateway's by its code; anything else was let through. */
async function gatewayOutcome(response: Response): Promise<Outcome> {
  expect([200, 202]).toContain(response.status)
  return (await response.text()).includes('"code":-32011') ? 'forbidden' : 'done'
}

function byGateway(name: string, method: string, id?: number): Way {
  return {
    name,
    action: 'call',
    async try(base, agentId, caller, mark) {
      const body = { jsonrpc: '2.0', ...(id === undefined ? {} : { id }), method, params: { mark } }
      return gatewayOutcome(await request(base, caller, 'POST', `/a2a/${agentId}`, body))
    },
  }
}

function byTool(name: string, action: Way['action'], args: (mark: string) => object): Way {
  return {
    name,
    action,
    async try(base, agentId, { authorization }, mark) {
      const params = { name, arguments: { agent_id: agentId, ...args(mark) } }
      const { result } = (await rpc(base, 'tools/call', params, { authorization })) as {
        result: { isError: boolean; content: { text: string }[] }
      }
      const forbidden = result.content[0]?.text.startsWith('FORBIDDEN') === true
      expect(result.isError, name).toBe(forbidden)
      return forbidden ? 'forbidden' : 'done'
    },
  }
}

/** 403 is the policy's only with its code: it is an ownership conflict's status, too. */
async function restOutcome(response: Response): Promise<Outcome> {
  expect([200, 403]).toContain(response.status)
  if (response.status === 200) return 'done'
  expect(await response.json()).toMatchObject({ error: 'FORBIDDEN' })
  return 'forbidden'
}

const LOOKING: readonly Way[] = [
  byGateway('message/send', 'message/send', 1),
  byGateway('a method of its own', 'x/y', 1),
  byGateway('a notification', 'x/y'),
  byGateway('message/stream', 'message/stream', 1),
  {
    name: 'GET stream',
    action: 'call',
    async try(base, agentId, caller, mark) {
      const path = `/a2a/${agentId}/stream?message=${encodeURIComponent(mark)}`
      return gatewayOutcome(await request(base, caller, 'GET', path))
    },
  },
  byTool('agent_send', 'call', (mark) => ({ message: mark })),
  byTool('agent_query', 'call', (mark) => ({ method: 'x/y', params: { mark } })),
  byTool('agent_info', 'list', () => ({})),
  {
    name: 'agent_list',
    action: 'list',
    async try(base, agentId, { authorization }) {
      const { result } = (await rpc(base, 'tools/call', { name: 'agent_list', arguments: {} }, { authorization })) as {
        result: { content: { text: string }[] }
      }
      return result.content[0]?.text.includes(JSON.stringify(agentId)) ? 'done' : 'forbidden'
    },
  },
  {
    name: 'GET one',
    action: 'list',
    try: async (base, agentId, caller) => restOutcome(await request(base, caller, 'GET', `/agents/${agentId}`)),
  },
  {
    name: 'GET all',
    action: 'list',
    async try(base, agentId, caller) {
      const cards = (await (await request(base, caller, 'GET', '/agents')).json()) as { agent_id: string }[]
      return cards.some(({ agent_id }) => agent_id === agentId) ? 'done' : 'forbidden'
    },
  },
]

function byRoute(
  method: string,
  path: (agentId: string) => string,
  body?: (agentId: string, mark: string) => object,
): Way {
  return {
    name: `${method} ${path('…')}`,
    action: 'register',
    try: async (base, agentId, caller, mark) =>
      restOutcome(await request(base, caller, method, path(agentId), body?.(agentId, mark))),
  }
}

const HEARTBEAT = 'POST /agents/heartbeat'

/** One after the other: each finds the agent as its owner registered it. */
const CHANGING: readonly Way[] = [
  byRoute(
    'POST',
    () => '/agents/heartbeat',
    (agent_id) => ({ agent_id }),
  ),
  byRoute(
    'POST',
    () => '/agents/register',
    (agent_id, mark) => ({ agent_id, name: mark, url: 'http://127.0.0.1:9/' }),
  ),
  byRoute(
    'POST',
    () => '/agents/deregister',
    (agent_id) => ({ agent_id }),
  ),
  byRoute('DELETE', (agentId) => `/agents/${agentId}`),
]

async function startMarkedAgent(): Promise<BareAgent> {
  return startAgent((asked, response) => {
    if (asked.method !== 'message/stream') return withResult('yes')(asked, response)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end('event: task.done\ndata: {"type":"done","payload":{}}\n\n')
  })
}

const rule = fc.record({
  clients: fc.constantFrom('*', 'alice', 'b*'),
  actions: fc.constantFrom('*', ['call'], ['list', 'register'], ['c*', 'list']),
  patterns: fc.constantFrom('*', 'agents', 'a*', ['queues', 'events']),
  channels: fc.constantFrom('*', 'aa', 'a*', '?b'),
  effect: fc.constantFrom('allow', 'deny'),
})

type Rule = typeof rule extends fc.Arbitrary<infer T> ? T : never

/** A glob, as plainly as it can be said. */
function matches(globs: string | readonly string[], text: string): boolean {
  return [globs].flat().some((glob) => new RegExp(`^${glob.replaceAll('*', '.*').replaceAll('?', '.')}$`).test(text))
}

function expected(rules: readonly Rule[], caller: string, action: string, agent: string): Outcome {
  const first = rules.find(
    ({ clients, actions, patterns, channels }) =>
      matches(clients, caller) && matches(actions, action) && matches(patterns, 'agents') && matches(channels, agent),
  )
  return first?.effect === 'allow' ? 'done' : 'forbidden'
}

test('S4 - with any policy, /a2a, /agents and the tools allow exactly the calls to agents that it allows', async () => {
  const cases = fc.sample(fc.array(rule, { minLength: 1, maxLength: 4 }), { seed: 11, numRuns: 12 })
  // Many policies in one: each case has agents of its own, under a prefix that no other case has.
  const rules = cases.flatMap((some, i) => some.map((one) => ({ ...one, channels: `case${i}-${one.channels}` })))
  const { http } = await serve({ ...trusting(one), ...governed({ clients: 'owner' }, ...rules) })
  const owner = await client('owner')
  const callers = [await client('alice'), await client('bob')]
  const agent = await startMarkedAgent()
  const restore = (agentId: string) =>
    request(http.url, owner, 'POST', '/agents/register', { agent_id: agentId, name: 'as it was', url: agent.url })
  const nameOf = async (agentId: string) => {
    const card = (await (await request(http.url, owner, 'GET', `/agents/${agentId}`)).json()) as { name?: string }
    return card.name
  }
  const marks = { done: new Set<string>(), forbidden: new Set<string>() }
  const seen = { done: 0, forbidden: 0 }
  const probe = async (way: Way, case_: number, name: string, caller: Client): Promise<Outcome> => {
    const mark = `<${way.name} of ${caller.name} at ${case_} ${name}>`
    const outcome = await way.try(http.url, `case${case_}-${name}`, caller, mark)
    const some = cases[case_] ?? []
    expect(outcome, `${mark} under ${JSON.stringify(some)}`).toBe(expected(some, caller.name, way.action, name))
    seen[outcome]++
    if (way.action === 'call') marks[outcome].add(mark)
    return outcome
  }
  for (const case_ of cases.keys()) {
    for (const name of ['aa', 'ab', 'bb']) {
      const agentId = `case${case_}-${name}`
      expect((await restore(agentId)).status).toBe(200)
      for (const caller of callers) {
        await Promise.all(LOOKING.map((way) => probe(way, case_, name, caller)))
        for (const way of CHANGING) {
          const outcome = await probe(way, case_, name, caller)
          const untouched = way.name === HEARTBEAT || outcome === 'forbidden'
          expect((await nameOf(agentId)) === 'as it was', way.name).toBe(untouched)
          await restore(agentId)
        }
      }
    }
  }
  expect(seen.done).toBeGreaterThan(100)
  expect(seen.forbidden).toBeGreaterThan(100)
  // What was let through reached the agent, notifications in their own time; what was not did not.
  const reached = () => {
    const all = agent.asked.map(({ body }) => body).join('\n')
    return (mark: string) => all.includes(JSON.stringify(mark).slice(1, -1))
  }
  await expect.poll(() => [...marks.done].filter((mark) => !reached()(mark)), { timeout: 20_000 }).toEqual([])
  expect([...marks.forbidden].filter(reached())).toEqual([])
}, 180_000)

test('S4 - agent tools that could do nothing for the caller are not shown', async () => {
  const { http } = await serve({
    ...trusting(one),
    ...governed(
      { clients: 'looker', actions: 'list', patterns: 'agents', channels: 'weather' },
      { clients: 'caller', actions: 'call', patterns: 'agents', channels: 'w*' },
      { clients: 'shut', patterns: 'agents', effect: 'deny' },
      { clients: ['shut', 'boss'] },
      { clients: 'registrar', actions: 'register', patterns: 'agents' },
    ),
  })
  const shown = async (name: string) => {
    const { result } = (await rpc(http.url, 'tools/list', {}, { authorization: await one.bearer(name) })) as {
      result: { tools: { name: string }[] }
    }
    return result.tools.map((tool) => tool.name).filter((tool) => tool.startsWith('agent_'))
  }
  expect(await shown('looker')).toEqual(['agent_list', 'agent_info'])
  expect(await shown('caller')).toEqual(['agent_send', 'agent_query'])
  expect(await shown('boss')).toEqual(AGENT_TOOL_NAMES)
  for (const name of ['shut', 'registrar', 'nobody']) expect(await shown(name), name).toEqual([])
})
