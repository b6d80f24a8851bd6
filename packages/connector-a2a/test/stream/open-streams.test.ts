import { encodeText } from '@signalbox/broker-core'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { RecentEvents } from '../../src/stream/recent-events.ts'
import type { Script } from '../agents.ts'
import { startAgent } from '../agents.ts'
import { openGateway } from '../gateway-host.ts'

/** Opens a stream with these results, and leaves it open. */
const opensWith =
  (results: readonly string[]): Script =>
  (_asked, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    for (const result of results) response.write(`data: {"jsonrpc":"2.0","id":1,"result":${result}}\n\n`)
  }

test.each([
  {
    dialect: 'of the gateway',
    method: 'message/stream',
    headers: {},
    results: [
      '{"kind":"status-update","taskId":"t","contextId":"c","final":false,"status":{"state":"working"}}',
      '{"kind":"artifact-update","taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[]}}',
      '{"kind":"message","role":"agent","messageId":"1","parts":[]}',
    ],
    names: ['status update', 'artifact update', 'message'],
  },
  {
    dialect: 'of A2A 1.0',
    method: 'SendStreamingMessage',
    headers: { 'a2a-version': '1.0' },
    results: [
      '{"task":{"id":"t","status":{"state":"TASK_STATE_SUBMITTED"}}}',
      '{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_WORKING"}}}',
      '{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a"}}}',
    ],
    names: ['task', 'status update', 'artifact update'],
  },
])('streams - an open stream $dialect shows its last events', async ({ method, headers, results, names }) => {
  const host = await openGateway()
  const agent = await startAgent(opensWith(results))
  await host.register('agent-1', agent.url)
  const abort = new AbortController()
  const began = Date.now()
  const response = await fetch(`${host.base}/a2a/agent-1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: {} }),
    signal: abort.signal,
  })
  await until(() => host.connector.streams.list()[0]?.events.length === results.length)
  const [stream] = host.connector.streams.list()
  expect(stream?.events.map(({ event }) => event)).toEqual(names)
  for (const { at, detail } of stream?.events ?? []) {
    expect(at).toBeGreaterThanOrEqual(began - 2)
    expect(at).toBeLessThanOrEqual(Date.now() + 2)
    expect(detail).toMatch(/^\d+ bytes$/)
  }
  abort.abort()
  await response.text().catch(() => {})
})

test.each([
  ['data: {"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}\n\n', 'status update'],
  ['data: {"message":{"messageId":"1","parts":[]}}\n\n', 'message'],
  ['data: {"error":{"code":404}}\n\n', 'error'],
  ['data: {"jsonrpc":"2.0","id":7,"error":{"code":-32603}}\n\n', 'error'],
  [
    'data: {"jsonrpc":"2.0","id":7,"result":{"status":{"state":"working","message":{"kind":"message"}}}}\n\n',
    'status update',
  ],
  ['event: task.done\ndata: {}\n\n', 'done'],
  ['event: task.error\ndata: {}\n\n', 'error'],
  [': end\n\n', 'end'],
  ['\u0000\u0001', 'event'],
])('streams - the name of the event %j is %s', (text, name) => {
  const recent = new RecentEvents()
  recent.add(encodeText(text), performance.now())
  expect(recent.list()).toMatchObject([{ event: name }])
})

test('streams - the last 20 events are kept, joined or not', () => {
  const recent = new RecentEvents()
  for (let n = 1; n <= 100; n++) {
    const events = Array.from({ length: n }, (_, i) => `data: {"message":{"n":"${'x'.repeat(i + 1)}"}}\n\n`)
    const length = events.at(-1)?.length ?? 0
    recent.add(encodeText(events.join('')), n)
    const kept = recent.list()
    expect(kept).toHaveLength(Math.min((n * (n + 1)) / 2, 20))
    expect(new Set(kept.map(({ event }) => event))).toEqual(new Set(['message']))
    expect(kept.at(-1)?.detail).toBe(`${length} bytes`)
    // The event before it: of the same text, or the last of the text before, which has one less.
    expect(kept.at(-2)?.detail).toBe(n === 1 ? undefined : `${length - 1} bytes`)
  }
})

test('streams - a large event is one event', () => {
  const recent = new RecentEvents()
  const text = `data: {"artifactUpdate":{"text":"${'x'.repeat(1_000_000)}"}}\n\n`
  recent.add(encodeText(text), 0)
  expect(recent.list()).toMatchObject([{ event: 'artifact update', detail: `${text.length} bytes` }])
})
