import { replaceFile, testFile } from '@signalbox/testkit/test-folder'
import { expect, test } from 'vitest'

import { postJson, startAgent, withResult } from './support/agent.ts'
import type { Answer } from './support/agent.ts'
import { rpc } from './support/mcp.ts'
import { serve } from './support/server.ts'
import { SseClient } from '@signalbox/testkit/sse-client'
import { issuer, policyText, trusting } from './support/tokens.ts'

// What is open when a new policy forbids its caller to go on: each kind, over HTTP. Alice is the one who is forbidden, Bob
// the one who stays.

const one = issuer()
const FORBIDDEN = { code: -32011, message: 'forbidden' }
const STREAM = { jsonrpc: '2.0', id: 7, method: 'message/stream', params: {} }

/** A server whose policy lets everybody do everything, until `forbid`. */
async function governed() {
  const path = testFile(policyText({}))
  const { http, api } = await serve({
    authentication: trusting(one).authentication ?? {},
    authorization: { enable: true, policyFile: path },
  })
  const series = async (name: string): Promise<string[]> => {
    const text = await (await fetch(`${api.url}/metrics`)).text()
    return text.match(new RegExp(`(?<=^${name}).*$`, 'gm')) ?? []
  }
  const as = async (clientId: string) => ({ authorization: await one.bearer(clientId) })
  return {
    base: http.url,
    api: api.url,
    alice: await as('alice'),
    bob: await as('bob'),
    forbid: (rule: object = {}) => replaceFile(path, policyText({ clients: 'alice', effect: 'deny', ...rule }, {})),
    activeStreams: () => series('broker_a2a_sse_streams_active'),
    denials: () => series('broker_authorization_denials_total'),
  }
}

/** Registers without a token of its own: the server asks for one. */
async function registered(base: string, headers: Record<string, string>, answer: Answer) {
  const agent = await startAgent(answer)
  const response = await postJson(
    `${base}/agents/register`,
    { agent_id: 'planner', name: 'P', url: agent.url },
    headers,
  )
  expect(response.status).toBe(200)
  return agent
}

/** Streams an event, and then nothing. */
const streaming: Answer = (asked, response) => {
  if (asked.method !== 'message/stream') return withResult('noted')(asked, response)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('event: task.status\ndata: {"type":"status_update","payload":{"state":"working"}}\n\n')
}

test('S4, A10 - streams of an agent that its caller may no longer call end with -32011, and the agent is notified', async () => {
  const { base, alice, bob, forbid, denials } = await governed()
  const agent = await registered(base, bob, streaming)
  const post = (headers: Record<string, string>) =>
    SseClient.open(
      `${base}/a2a/planner`,
      { ...headers, 'content-type': 'application/json' },
      { method: 'POST', body: JSON.stringify(STREAM) },
    )
  const ending = [await post(alice), await SseClient.open(`${base}/a2a/planner/stream?message=hi`, alice)]
  const staying = await post(bob)
  for (const stream of [...ending, staying]) expect((await stream.next()).event).toBe('task.status')

  forbid({ actions: 'call', patterns: 'agents' })
  await Promise.all(ending.map(({ ended }) => ended))
  for (const { seen } of ending) {
    expect(seen.map(({ event }) => event)).toEqual(['task.status', 'task.error'])
    expect(seen.at(-1)?.json).toMatchObject({ type: 'error', payload: FORBIDDEN })
  }
  const reported = () =>
    agent.asked.filter(({ method }) => method === 'stream_cancel').map(({ params }) => params['stream_id'])
  await expect.poll(reported, { timeout: 20_000 }).toHaveLength(2)
  expect(new Set(reported())).toEqual(new Set(ending.map(({ seen }) => seen.at(-1)?.json.stream_id)))
  await expect.poll(() => agent.gone.length, { timeout: 20_000 }).toBe(2)
  expect(staying.seen).toHaveLength(1)
  expect(await denials()).toEqual(['{action="call",pattern="agents"} 2'])
})

test('S4 - a stream that its agent has not opened yet is refused, and the agent is notified', async () => {
  const { base, alice, bob, forbid } = await governed()
  const asked = Promise.withResolvers<void>()
  const agent = await registered(base, bob, (call, response) => {
    if (call.method === 'message/stream') asked.resolve()
    else void withResult('noted')(call, response)
  })
  const answer = postJson(`${base}/a2a/planner`, STREAM, alice)
  await asked.promise
  forbid()
  const response = await answer
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(await response.json()).toEqual({ jsonrpc: '2.0', id: 7, error: FORBIDDEN })
  await expect.poll(() => agent.gone.length, { timeout: 20_000 }).toBe(1)
})

test('S4 - a stream whose client does not read is disconnected when the policy forbids it', async () => {
  const { base, alice, bob, forbid, activeStreams } = await governed()
  let pushed = 0
  const event = `event: task.artifact\ndata: {"type":"artifact","payload":"${'x'.repeat(65_536)}"}\n\n`
  const agent = await registered(base, bob, (call, response) => {
    if (call.method !== 'message/stream') return withResult('noted')(call, response)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.on('error', () => {})
    const push = (): void => {
      do pushed++
      while (!response.destroyed && response.write(event))
    }
    response.on('drain', push)
    push()
  })
  const stream = await SseClient.open(`${base}/a2a/planner/stream`, alice)
  stream.pause()
  // Everything between the agent and its client is full.
  let before = -1
  const stalled = (): boolean => before === (before = pushed)
  await expect.poll(stalled, { timeout: 20_000, interval: 500 }).toBe(true)
  forbid()
  await expect.poll(() => agent.gone.length, { timeout: 20_000 }).toBe(1)
  await expect.poll(() => activeStreams(), { timeout: 10_000 }).toEqual([' 0'])
  stream.resume()
  await stream.ended
  expect(stream.seen.at(-1)?.event).toBe('task.artifact')
})

test('S4, M5 - a call that was made while it was allowed runs to its end', async () => {
  const { base, alice, bob, forbid, denials } = await governed()
  const asked = Promise.withResolvers<() => void>()
  await registered(base, bob, (call, response) => asked.resolve(() => void withResult('done')(call, response)))
  const answer = postJson(`${base}/a2a/planner`, { ...STREAM, method: 'message/send' }, alice)
  const waiting = await SseClient.open(`${base}/ce/subscribe/events?channel=a`, alice)
  const answerIt = await asked.promise
  forbid()
  // Its end shows that the policy is in force.
  await waiting.ended
  answerIt()
  expect(await (await answer).json()).toMatchObject({ id: 7, result: 'done' })
  expect(await denials()).toEqual(['{action="subscribe",pattern="events"} 1'])
})

test('S4 - subscriptions at /ce that are no longer allowed end with the reason, others continue', async () => {
  const { base, alice, bob, forbid } = await governed()
  const kinds = [
    'events?channel=orders',
    'events?channel=orders.>',
    'events-store?channel=orders',
    'commands?channel=orders',
    'queries?channel=orders',
  ]
  const open = (headers: Record<string, string>): Promise<SseClient[]> =>
    Promise.all(kinds.map((kind) => SseClient.open(`${base}/ce/subscribe/${kind}`, headers)))
  const ending = await open(alice)
  const staying = await open(bob)
  forbid({ channels: 'orders*' })
  await Promise.all(ending.map(({ ended }) => ended))
  for (const [i, { seen }] of ending.entries()) {
    expect(seen, kinds[i]).toMatchObject([{ event: 'error', json: { is_error: true, data: { code: 'FORBIDDEN' } } }])
  }
  const send = { name: 'events_publish', arguments: { channel: 'orders', body: 'x' } }
  await rpc(base, 'tools/call', send, bob)
  expect(await staying[0]?.next()).toMatchObject({ event: 'message' })
})

test('S4 - a long poll that a new policy forbids ends with an error and consumes no message', async () => {
  const { base, alice, bob, forbid, denials } = await governed()
  const receive = { name: 'queue_receive', arguments: { channel: 'orders', max_messages: 1, wait_timeout_seconds: 60 } }
  const byTool = rpc(base, 'tools/call', receive, alice)
  const leased = `${base}/ce/queue/receive?channel=orders&wait_timeout=60`
  const byCe = ['', '&visibility_seconds=30'].map((more) =>
    fetch(`${leased}${more}`, { method: 'POST', headers: alice }),
  )
  const bobs = fetch(leased, { method: 'POST', headers: bob })
  const seeing = await SseClient.open(`${base}/ce/subscribe/events?channel=a`, alice)
  forbid()
  await seeing.ended
  expect(await byTool).toMatchObject({
    result: {
      isError: true,
      content: [{ text: expect.stringMatching(/^FORBIDDEN: The policy does not let "alice" receive/) }],
    },
  })
  for (const response of await Promise.all(byCe)) {
    expect(response.status).toBe(403)
    expect(await response.json()).toMatchObject({ is_error: true, data: { code: 'FORBIDDEN', action: 'receive' } })
  }
  await rpc(base, 'tools/call', { name: 'queue_send', arguments: { channel: 'orders', body: 'for bob' } }, bob)
  expect(await (await bobs).json()).toMatchObject({ data: { messages: [{ receive_count: 1 }] } })
  expect(await denials()).toContain('{action="receive",pattern="queues"} 3')
})

test('S3, S4 - a new policy ends neither the stream of /mcp nor the monitor, which depend on no channel', async () => {
  const { base, api, alice, forbid } = await governed()
  const mcp = await SseClient.open(`${base}/mcp`, alice)
  const monitor = new WebSocket(`${api.replace('http', 'ws')}/api/monitor`)
  await new Promise((resolve, reject) => {
    monitor.addEventListener('open', resolve)
    monitor.addEventListener('error', reject)
  })
  const seeing = await SseClient.open(`${base}/ce/subscribe/events?channel=a`, alice)
  forbid()
  await seeing.ended
  expect(monitor.readyState).toBe(WebSocket.OPEN)
  let over = false
  void mcp.ended.then(() => (over = true))
  expect(await rpc(base, 'ping', {}, alice)).toMatchObject({ result: {} })
  expect(over).toBe(false)
  monitor.close()
})
