import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:http'
import { text as readText } from 'node:stream/consumers'

import * as fc from 'fast-check'
import pino from 'pino'
import { TOOL_NAMES, TOOLS } from '@signalbox/testkit/mcp-tools'
import { expect, onTestFinished, test } from 'vitest'
import { replaceFile, testFile, testFolder } from '@signalbox/testkit/test-folder'

import { createConfig } from '../src/config/load.ts'
import type { SecurityEvent } from '../src/security/events.ts'
import { logSecurity } from '../src/security/events.ts'
import { openPolicyFile } from '../src/security/policy-file.ts'
import { startServer } from '../src/server.ts'
import { callTool, rpc } from './support/mcp.ts'
import { serve } from './support/server.ts'
import { governed, issuer, policyText, trusting } from './support/tokens.ts'

const EVENT = JSON.stringify({ specversion: '1.0', id: '1', source: '/test', type: 'test', data: 'x' })

/** Calls a route below /ce. */
async function ce(base: string, method: string, route: string, authorization?: string): Promise<Response> {
  const leave = new AbortController()
  const response = await fetch(`${base}/ce/${route}`, {
    method,
    signal: leave.signal,
    headers: {
      ...(method === 'POST' ? { 'content-type': 'application/cloudevents+json' } : {}),
      ...(authorization === undefined ? {} : { authorization }),
    },
    ...(method === 'POST' ? { body: EVENT } : {}),
  })
  if (response.headers.get('content-type') === 'text/event-stream') leave.abort()
  return response
}

async function toolNames(base: string, authorization: string): Promise<string[]> {
  const answer = (await rpc(base, 'tools/list', {}, { authorization })) as { result: { tools: { name: string }[] } }
  return answer.result.tools.map(({ name }) => name)
}

test('S4 - a denied call is isError from a tool and 403 on REST, with the denied action', async () => {
  const { http, api } = await serve(governed({ channels: 'open' }))
  expect(await callTool(http.url, 'queue_send', { channel: 'closed', body: 'x' })).toMatchObject({
    isError: true,
    text: 'FORBIDDEN: The policy does not let "anonymous" send on queues "closed". Use another channel or tool, or ask the operator for permission.',
  })
  expect(await callTool(http.url, 'queue_send', { channel: 'open', body: 'x' })).toMatchObject({ isError: false })
  const refused = await ce(http.url, 'POST', 'queue/send?channel=closed')
  expect(refused.status).toBe(403)
  expect(await refused.json()).toEqual({
    is_error: true,
    message: 'the policy does not let "anonymous" send on queues "closed"',
    data: { code: 'FORBIDDEN', action: 'send', pattern: 'queues', channel: 'closed' },
  })
  expect((await ce(http.url, 'POST', 'queue/send?channel=open')).status).toBe(202)
  expect(await (await fetch(`${api.url}/metrics`)).text()).toMatch(
    /broker_authorization_denials_total\{action="send",pattern="queues"\} 2\n/,
  )
})

test('S4, S1 - callers that share a connection, as behind a proxy, each have their own name and permissions', async () => {
  const one = issuer()
  const { http } = await serve({
    ...trusting(one),
    ...governed({ clients: 'alice', channels: 'alices' }, { clients: 'bob', channels: 'bobs' }),
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  let connections = 0
  const post = async (path: string, type: string, body: string, authorization: string): Promise<string> => {
    const outgoing = request(http.url + path, {
      method: 'POST',
      agent,
      headers: { 'content-type': type, authorization },
    })
    outgoing.once('socket', (socket) => void (connections += socket.connecting ? 1 : 0))
    const [incoming]: IncomingMessage[] = await once(outgoing.end(body), 'response')
    return incoming === undefined ? '' : readText(incoming)
  }
  const tokens = await Promise.all(['alice', 'bob', 'alice', 'bob'].map((name) => one.bearer(name)))
  for (const [i, token] of tokens.entries()) {
    const [own, other] = i % 2 === 0 ? ['alices', 'bobs'] : ['bobs', 'alices']
    for (const [channel, allowed] of [
      [own, true],
      [other, false],
    ] as const) {
      const params = { name: 'queue_send', arguments: { channel, body: 'x' } }
      const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
      expect(await post('/mcp', 'application/json', call, token)).toContain(`"isError":${!allowed}`)
      const sent = await post(`/ce/queue/send?channel=${channel}`, 'application/cloudevents+json', EVENT, token)
      expect(sent.includes('FORBIDDEN')).toBe(!allowed)
    }
  }
  expect(connections).toBe(1)
})

test('S4 - a batch with one forbidden event sends no event', async () => {
  const { http } = await serve(governed({ channels: 'open' }))
  for (const route of ['send/event-store', 'queue/send', 'send/event']) {
    const events = ['open', 'closed'].map((subject) => Object.assign(JSON.parse(EVENT), { subject }))
    const response = await fetch(`${http.url}/ce/${route}`, {
      method: 'POST',
      headers: { 'content-type': 'application/cloudevents-batch+json' },
      body: JSON.stringify(events),
    })
    expect(response.status, route).toBe(403)
  }
  expect(await callTool(http.url, 'channel_list', {})).toMatchObject({ text: '[]' })
})

test('S4 - tools that could do nothing for the caller are not shown', async () => {
  const one = issuer()
  const { http } = await serve({
    ...trusting(one),
    ...governed(
      { clients: 'reader', actions: ['peek', 'read', 'list'] },
      { clients: 'sender', actions: 'send', patterns: 'queues', channels: 'orders' },
      { clients: 'boss' },
    ),
  })
  const shown = async (clientId: string) => toolNames(http.url, await one.bearer(clientId))
  const readers = TOOLS.filter(({ action }) => ['peek', 'read', 'list'].includes(action))
  expect(await shown('reader')).toEqual(readers.map(({ name }) => name))
  expect(await shown('sender')).toEqual(['queue_send'])
  expect(await shown('nobody')).toEqual([])
  expect(await shown('boss')).toEqual(TOOL_NAMES)
})

test('S4 - a wildcard subscription needs permission for every channel that it matches', async () => {
  const { http } = await serve(governed({ channels: 'orders.*' }))
  const status = async (route: string) => (await ce(http.url, 'GET', route)).status
  expect(await status('subscribe/events?channel=orders.>')).toBe(200)
  expect(await status('subscribe/events?channel=>')).toBe(403)
  expect(await status('subscribe/events?channel=*.new')).toBe(403)
  expect(await status('subscribe/commands?channel=orders.new')).toBe(200)
  expect(await status('subscribe/commands?channel=other')).toBe(403)
})

test('S4 - a stream that a new policy does not allow ends with the reason', async () => {
  const path = testFile(policyText({}))
  const { http } = await serve({ authorization: { enable: true, policyFile: path } })
  const stream = await fetch(`${http.url}/ce/subscribe/events?channel=orders`)
  replaceFile(path, policyText({ channels: 'orders', effect: 'deny' }, {}))
  const text = await stream.text()
  expect(text).toContain('event: error')
  expect(text).toContain('FORBIDDEN')
})

test('S4 - a changed policy is applied; a broken one is reported, and the previous one stays', async () => {
  const events: SecurityEvent[] = []
  const path = testFile(policyText({ channels: 'a' }))
  const policy = await openPolicyFile(path, (event) => void events.push(event), 20)
  onTestFinished(() => policy[Symbol.dispose]())
  const allowed = (channel: string) => policy.authorization.permits({ clientId: 'x' }, 'send', 'queues', channel)
  expect([allowed('a'), allowed('b')]).toEqual([true, false])
  for (const broken of [
    'rules: [',
    '{"rules": [{"channels": "*"}], "extra": 1}',
    'rules: {}',
    '',
    'a: &x [*x, *x]',
    'rules: []\nrules: []',
  ]) {
    const before = events.length
    replaceFile(path, broken)
    await expect.poll(() => events.length, { timeout: 20_000 }).toBe(before + 1)
    expect(events.at(-1)).toMatchObject({ kind: 'policy.refused', file: path })
    expect([allowed('a'), allowed('b')]).toEqual([true, false])
  }
  replaceFile(path, 'rules:\n  - { clients: "*", actions: "*", patterns: "*", channels: [b], effect: allow }\n')
  await expect.poll(() => events.at(-1), { timeout: 20_000 }).toEqual({ kind: 'policy.reloaded', file: path, rules: 1 })
  expect([allowed('a'), allowed('b')]).toEqual([false, true])
})

test('S4 - reloads and refusals are in the log', () => {
  const lines: string[] = []
  const tell = logSecurity(pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }))
  tell({ kind: 'policy.refused', file: 'p', problems: ['rule 0: x'] })
  tell({ kind: 'policy.reloaded', file: 'p', rules: 1 })
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 50, msg: 'policy not reloaded: the previous policy remains in force', problems: ['rule 0: x'] },
    { level: 30, msg: 'policy reloaded', rules: 1 },
  ])
})

test.each([
  [{ enable: true }, 'authorization.policyFile: authorization is on and has no policy; allowed: a path'],
  [{ enable: true, policyFile: '/nowhere' }, 'authorization.policyFile: cannot read "/nowhere" (ENOENT)'],
])('S4 - the settings %j stop the start', async (authorization, problem) => {
  const start = async () => startServer(createConfig({ authorization, store: { path: testFolder() } }))
  await expect(start()).rejects.toMatchObject({ code: 'CONFIG_INVALID', problems: [problem] })
})

test('S4 - a policy that is not valid stops the start, with every problem', async () => {
  const policyFile = testFile('{"rules": [{"clients": "a", "effect": "maybe"}, {"rule": 1, "effect": "deny"}]}')
  const config = createConfig({ authorization: { enable: true, policyFile }, store: { path: testFolder() } })
  const error = await startServer(config).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'CONFIG_INVALID' })
  expect(String(error)).toContain('authorization.policyFile: rule 0: effect is "maybe"; allowed are allow, deny')
  expect(String(error)).toContain('authorization.policyFile: rule 1: unknown key "rule"')
})

/** A way through the product to a channel: what it does, and whether it was done. */
interface Way {
  readonly action: string
  readonly pattern: string
  readonly try: (base: string, channel: string, authorization: string) => Promise<'done' | 'forbidden'>
}

/** By a tool. What no subscriber answers, or is not there, was let through all the same. */
function byTool(action: string, pattern: string, name: string, args: object): Way {
  return {
    action,
    pattern,
    async try(base, channel, authorization) {
      const answer = (await rpc(base, 'tools/call', { name, arguments: { channel, ...args } }, { authorization })) as {
        result: { isError: boolean; content: { text: string }[] }
      }
      const forbidden = answer.result.isError && answer.result.content[0]?.text.startsWith('FORBIDDEN')
      return forbidden ? 'forbidden' : 'done'
    },
  }
}

function byCe(action: string, pattern: string, method: 'GET' | 'POST', route: string): Way {
  return {
    action,
    pattern,
    async try(base, channel, authorization) {
      const mark = route.includes('?') ? '&' : '?'
      const response = await ce(base, method, `${route}${mark}channel=${channel}`, authorization)
      expect([200, 202, 403, 503], route).toContain(response.status)
      return response.status === 403 ? 'forbidden' : 'done'
    },
  }
}

const WAYS: readonly Way[] = [
  byTool('send', 'queues', 'queue_send', { body: 'x' }),
  byTool('peek', 'queues', 'queue_peek', { max_messages: 1 }),
  byTool('send', 'events', 'events_publish', { body: 'x' }),
  byTool('send', 'events_store', 'events_store_publish', { body: 'x' }),
  byTool('read', 'events_store', 'events_store_read', { max_messages: 1 }),
  byTool('read', 'events_store', 'events_store_read_latest', {}),
  byTool('list', 'queues', 'channel_info', { type: 'queues' }),
  byTool('list', 'events', 'channel_info', { type: 'events' }),
  byCe('send', 'queues', 'POST', 'queue/send'),
  byCe('receive', 'queues', 'POST', 'queue/receive?wait_timeout=0'),
  byCe('peek', 'queues', 'POST', 'queue/receive?is_peek=true'),
  byCe('manage', 'queues', 'POST', 'queue/ack_all'),
  byCe('send', 'events', 'POST', 'send/event'),
  byCe('send', 'events_store', 'POST', 'send/event-store'),
  byCe('subscribe', 'events', 'GET', 'subscribe/events'),
  byCe('subscribe', 'events_store', 'GET', 'subscribe/events-store'),
  byCe('respond', 'commands', 'GET', 'subscribe/commands'),
  byCe('respond', 'queries', 'GET', 'subscribe/queries'),
]

test('S4 - with any policy, MCP and CloudEvents allow exactly the actions that it allows', async () => {
  const one = issuer()
  const path = testFile(policyText())
  const { http } = await serve({ ...trusting(one), authorization: { enable: true, policyFile: path } })
  const callers = new Map(
    await Promise.all(['alice', 'bob'].map(async (name) => [name, await one.bearer(name)] as const)),
  )
  // Many policies in one: each case has channels of its own, under a prefix that no other case has.
  const names = ['a', 'b', 'a.b']
  const rule = fc.record({
    clients: fc.constantFrom('*', 'alice', 'b*'),
    actions: fc.constantFrom('*', ['send', 'list'], ['receive', 'peek', 're*'], ['subscribe', 'manage']),
    patterns: fc.constantFrom('*', 'queues', 'events*', ['commands', 'queries']),
    channels: fc.constantFrom('*', 'a', 'a*', '?'),
    effect: fc.constantFrom('allow', 'deny'),
  })
  const cases = fc.sample(fc.array(rule, { minLength: 1, maxLength: 4 }), { seed: 5, numRuns: 12 })
  replaceFile(
    path,
    policyText(...cases.flatMap((rules, i) => rules.map((one) => ({ ...one, channels: `case${i}.${one.channels}` })))),
  )
  const probe = byTool('send', 'queues', 'queue_send', { body: 'x' })
  const expected = (rules: (typeof cases)[number], clientId: string, { action, pattern }: Way, channel: string) => {
    const first = rules.find(
      ({ clients, actions, patterns, channels }) =>
        [clients].some((glob) => matches(glob, clientId)) &&
        [actions].flat().some((glob) => matches(glob, action)) &&
        [patterns].flat().some((glob) => matches(glob, pattern)) &&
        matches(channels, channel),
    )
    return first?.effect === 'allow' ? 'done' : 'forbidden'
  }
  const allows = cases.flatMap((rules, i) =>
    names.flatMap((name) => [...callers.keys()].map((clientId) => ({ rules, i, name, clientId }))),
  )
  const open = allows.find(({ rules, name, clientId }) => expected(rules, clientId, probe, name) === 'done')
  if (open === undefined) throw new Error('no case lets anybody send')
  // The policy of the file is in force as soon as something is allowed.
  await expect
    .poll(() => probe.try(http.url, `case${open.i}.${open.name}`, callers.get(open.clientId) ?? ''), {
      timeout: 20_000,
    })
    .toBe('done')
  const seen = { done: 0, forbidden: 0 }
  for (const { rules, i, name, clientId } of allows) {
    await Promise.all(
      WAYS.map(async (way) => {
        const outcome = await way.try(http.url, `case${i}.${name}`, callers.get(clientId) ?? '')
        const what = `${clientId} ${way.action} ${way.pattern} ${name} under ${JSON.stringify(rules)}`
        expect(outcome, what).toBe(expected(rules, clientId, way, name))
        seen[outcome]++
      }),
    )
  }
  expect(seen.done).toBeGreaterThan(100)
  expect(seen.forbidden).toBeGreaterThan(100)
}, 180_000)

/** A glob, as plainly as it can be said. */
function matches(glob: string, text: string): boolean {
  return new RegExp(
    `^${glob
      .replaceAll('.', String.raw`\.`)
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
  ).test(text)
}

test('S4 - a large body of a caller without any permission is refused as a small one, and audited', async () => {
  const { http, api } = await serve(governed({ clients: 'somebody else' }))
  // Not JSON: a refusal without reading it.
  const large = `{${'['.repeat(100_000)}`
  const args = `{"channel":"c","body":"${'x'.repeat(100_000)}","unknown":1}`
  const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"queue_send","arguments":${args}}}`
  const post = async (path: string, type: string, body: string): Promise<unknown> => {
    const headers = { 'content-type': type, accept: 'application/json, text/event-stream' }
    const answer = await fetch(`${http.url}${path}`, { method: 'POST', headers, body })
    return { status: answer.status, body: await answer.json() }
  }
  expect(await post('/mcp', 'application/json', call)).toMatchObject({
    status: 200,
    body: {
      id: 7,
      result: {
        isError: true,
        content: [{ text: expect.stringContaining('does not let "anonymous" send on queues "*"') }],
      },
    },
  })
  expect(await post('/ce/queue/send?channel=c', 'application/cloudevents+json', large)).toMatchObject({
    status: 403,
    body: { data: { code: 'FORBIDDEN', action: 'send', pattern: 'queues' } },
  })
  const message = `{"jsonrpc":"2.0","id":8,"method":"message/send","params":{"a":"${'x'.repeat(100_000)}`
  expect(await post('/a2a/agent', 'application/json', `${message}"}}`)).toMatchObject({
    body: { id: 8, error: { code: -32011 } },
  })
  expect(await post('/a2a/agent/message:send', 'application/json', large)).toMatchObject({ status: 403 })
  const metrics = await (await fetch(`${api.url}/metrics`)).text()
  expect(metrics).toMatch(/broker_authorization_denials_total\{action="send",pattern="queues"\} 2\n/)
  expect(metrics).toMatch(/broker_authorization_denials_total\{action="call",pattern="agents"\} 2\n/)
})
