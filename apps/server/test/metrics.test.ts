import { spawnSync } from 'node:child_process'

import { Registry } from 'prom-client'
import { expect, test } from 'vitest'

import { eventLoopMetrics } from '../src/metrics/process.ts'
import { RequestDurations } from '../src/http/request-metrics.ts'
import { callAgent, register, startAgent } from './support/agent.ts'
import { callTool, rpc } from './support/mcp.ts'
import { serve } from './support/server.ts'

type Series = Record<string, number>

/** The samples of a page, by series as written. */
async function scrape(api: string): Promise<Series> {
  const text = await (await fetch(`${api}/metrics`)).text()
  const samples = text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(/ (?=[^ ]*$)/) as [string, string])
  return Object.fromEntries(samples.map(([series, value]) => [series, Number(value)]))
}

test("PROBE-4 - the names and types of the product's series are fixed", async () => {
  const { api } = await serve({ metrics: { queues: ['*'] } })
  const response = await fetch(`${api.url}/metrics`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
  const text = await response.text()
  const ours = [...text.matchAll(/^# TYPE (broker_\S+ \S+)$/gm)]
    .map(([, type = '']) => type)
    .toSorted((a, b) => a.localeCompare(b))
  expect(ours).toEqual([
    'broker_a2a_errors_total counter',
    'broker_a2a_first_byte_seconds histogram',
    'broker_a2a_inbox_oldest_seconds gauge',
    'broker_a2a_inbox_waiting gauge',
    'broker_a2a_keyed_total counter',
    'broker_a2a_leases_total counter',
    'broker_a2a_log_appends_total counter',
    'broker_a2a_log_bytes_total counter',
    'broker_a2a_log_events_total counter',
    'broker_a2a_registry_operations_total counter',
    'broker_a2a_replays_total counter',
    'broker_a2a_request_duration_seconds histogram',
    'broker_a2a_requests_in_flight gauge',
    'broker_a2a_requests_total counter',
    'broker_a2a_runs gauge',
    'broker_a2a_sse_streams_active gauge',
    'broker_authorization_denials_total counter',
    'broker_build_info gauge',
    'broker_channels gauge',
    'broker_commit_duration_seconds histogram',
    'broker_commit_operations histogram',
    'broker_dead_lettered_total counter',
    'broker_errors_total counter',
    'broker_event_loop_delay_seconds untyped',
    'broker_event_loop_lag_seconds gauge',
    'broker_event_loop_utilization gauge',
    'broker_events_dropped_total counter',
    'broker_expired_total counter',
    'broker_gate_waits_total counter',
    'broker_limit_max gauge',
    'broker_limit_refusals_total counter',
    'broker_limit_use gauge',
    'broker_memory_exceeded gauge',
    'broker_message_bytes_total counter',
    'broker_messages_total counter',
    'broker_queue_depth gauge',
    'broker_queue_messages gauge',
    'broker_queue_oldest_message_age_seconds gauge',
    'broker_queues_omitted gauge',
    'broker_queues_paused gauge',
    'broker_ready gauge',
    'broker_redelivered_total counter',
    'broker_request_duration_seconds histogram',
    'broker_retries_total counter',
    'broker_routed_messages_total counter',
    'broker_routing_failures_total counter',
    'broker_schedule_fires_total counter',
    'broker_schedule_lag_seconds histogram',
    'broker_schema_refusals_total counter',
    'broker_sse_streams_active gauge',
    'broker_store_bytes gauge',
    'broker_unhandled_rejections_total counter',
  ])
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'nodejs_eventloop_lag_seconds']) {
    expect(text).toMatch(new RegExp(`^${name} [0-9.e+-]+$`, 'm'))
  }
})

test('metrics - messages and bytes by type and direction, errors by code', async () => {
  const { http, api, broker } = await serve()
  await using subscription = await broker
    .as({ clientId: 'worker' })
    .commands.subscribe('work', {}, async () => ({ body: new Uint8Array(0) }))
  void subscription
  const before = await scrape(api.url)
  expect(before['broker_messages_total{type="queues",direction="in"}']).toBe(0)
  expect(before['broker_errors_total{code="CHANNEL_NOT_FOUND"}']).toBe(0)

  await callTool(http.url, 'queue_send', { channel: 'q', body: 'hello' })
  await callTool(http.url, 'queue_send', { channel: 'q', body: 'über' })
  await callTool(http.url, 'queue_receive', { channel: 'q', max_messages: 1 })
  await callTool(http.url, 'events_publish', { channel: 'e', body: 'x' })
  await callTool(http.url, 'events_store_publish', { channel: 's', body: 'xy' })
  await callTool(http.url, 'events_store_read', { channel: 's', max_messages: 1 })
  await callTool(http.url, 'command_send', { channel: 'work', body: 'xyz' })
  await callTool(http.url, 'channel_info', { channel: 'none', type: 'queues' })
  await callTool(http.url, 'queue_peek', { channel: '_AGENTS_.x', max_messages: 1 })

  const after = await scrape(api.url)
  expect(after).toMatchObject({
    'broker_messages_total{type="queues",direction="in"}': 2,
    'broker_messages_total{type="queues",direction="out"}': 1,
    'broker_message_bytes_total{type="queues",direction="in"}': 10,
    'broker_message_bytes_total{type="queues",direction="out"}': 5,
    'broker_messages_total{type="events",direction="in"}': 1,
    'broker_messages_total{type="events",direction="out"}': 0,
    'broker_message_bytes_total{type="events_store",direction="in"}': 2,
    'broker_message_bytes_total{type="events_store",direction="out"}': 2,
    'broker_messages_total{type="commands",direction="in"}': 1,
    'broker_messages_total{type="commands",direction="out"}': 1,
    'broker_errors_total{code="CHANNEL_NOT_FOUND"}': 1,
    'broker_errors_total{code="CHANNEL_RESERVED"}': 1,
  })
})

test('metrics - requests by connector and outcome', async () => {
  const { http, api } = await serve()
  await rpc(http.url, 'ping', {})
  await callTool(http.url, 'channel_info', { channel: 'none', type: 'queues' })
  await rpc(http.url, 'no/such/method', {})
  await rpc(http.url, 'ping', {}, { origin: 'https://evil.example' })
  const series = await scrape(api.url)
  const count = (outcome: string) =>
    series[`broker_request_duration_seconds_count{connector="mcp",outcome="${outcome}"}`]
  expect(['success', 'tool_error', 'error', 'origin_refused'].map(count)).toEqual([1, 1, 1, 1])
  expect(series['broker_request_duration_seconds_bucket{le="+Inf",connector="mcp",outcome="success"}']).toBe(1)
})

test('metrics - a duration counts in every bucket up to its bound, and in the sum', () => {
  const durations = new RequestDurations()
  const observe = durations.of('mcp')
  for (const seconds of [0.0005, 0.001, 0.002, 7, 4000]) observe('success', seconds)
  durations.of('cloudevents')('error', 0.25)
  const lines = durations.text().split('\n')
  const bucket = (bound: string) =>
    lines.find((line) => line.includes(`_bucket{le="${bound}",connector="mcp",outcome="success"}`))?.split(' ')[1]
  expect(['0.001', '0.0025', '5', '10', '3600', '+Inf'].map(bucket)).toEqual(['2', '3', '3', '4', '4', '5'])
  expect(lines).toEqual(
    expect.arrayContaining([
      '# TYPE broker_request_duration_seconds histogram',
      'broker_request_duration_seconds_sum{connector="mcp",outcome="success"} 4007.0035',
      'broker_request_duration_seconds_count{connector="mcp",outcome="success"} 5',
      'broker_request_duration_seconds_count{connector="cloudevents",outcome="error"} 1',
    ]),
  )
})

test('metrics - the contents of the queues, the store and its commits', async () => {
  const { http, api } = await serve({ settleGraceMs: 10_000 })
  await callTool(http.url, 'queue_send', { channel: 'q', body: 'a' })
  await callTool(http.url, 'queue_send', { channel: 'q', body: 'b' })
  await callTool(http.url, 'queue_send', { channel: 'q', body: 'c', delay_seconds: 60 })
  // On a connection of its own, so that no later request on it settles what was received.
  await fetch(`${http.url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'queue_peek', arguments: { channel: 'q', max_messages: 1 } },
    }),
  })
  const series = await scrape(api.url)
  expect(series).toMatchObject({
    'broker_queue_messages{state="waiting"}': 2,
    'broker_queue_messages{state="delayed"}': 1,
    'broker_queue_messages{state="in_flight"}': 0,
    broker_channels: 1,
  })
  expect(series['broker_store_bytes']).toBeGreaterThan(0)
  expect(series['broker_commit_operations_sum']).toBeGreaterThanOrEqual(3)
  expect(series['broker_commit_duration_seconds_count']).toBe(series['broker_commit_operations_count'])
  expect(series['broker_commit_duration_seconds_sum']).toBeGreaterThan(0)
})

test('metrics - messages in flight', async () => {
  const { api, broker } = await serve()
  const { queues } = broker.as({ clientId: 'worker' })
  await queues.send('q', { body: new Uint8Array(1) })
  const [delivery] = await queues.receive('q')
  expect(await scrape(api.url)).toMatchObject({
    'broker_queue_messages{state="waiting"}': 0,
    'broker_queue_messages{state="in_flight"}': 1,
  })
  await queues.ack([delivery!.receipt])
  expect((await scrape(api.url))['broker_queue_messages{state="in_flight"}']).toBe(0)
})

test('metrics - open streams are counted while they are open', async () => {
  const { http, api } = await serve()
  const open = async () => (await scrape(api.url))['broker_sse_streams_active{connector="mcp"}']
  expect(await open()).toBe(0)
  const stream = await fetch(`${http.url}/mcp`, { headers: { accept: 'text/event-stream' } })
  expect(await open()).toBe(1)
  await stream.body!.cancel()
  await expect.poll(open, { timeout: 10_000 }).toBe(0)
})

test('A14 - requests to agents are counted by agent, method, status and code; all else is unknown', async () => {
  const { http, api } = await serve()
  const error = { code: -32002, message: 'no such task' }
  const agent = await startAgent(({ method }, response) => {
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...(method === 'tasks/get' ? { error } : { result: 'yes' }) }))
  })
  await register(http.url, { agent_id: 'known', name: 'Known', url: agent.url })
  await register(http.url, { agent_id: 'down', name: 'Down', url: 'http://127.0.0.1:1/' })
  for (const method of ['message/send', 'tasks/get', 'made/up', 'toString']) await callAgent(http.url, 'known', method)
  await callAgent(http.url, 'down', 'message/send')
  await callAgent(http.url, 'nobody', 'message/send')
  await callAgent(http.url, 'Not-An-Id', 'message/send')
  const series = await scrape(api.url)
  const counted = Object.fromEntries(
    Object.entries(series).filter(([name]) => /^broker_a2a_(?:requests|errors|registry_operations)_total/.test(name)),
  )
  expect(counted).toEqual({
    'broker_a2a_requests_total{agent_id="known",method="message/send",status="success"}': 1,
    'broker_a2a_requests_total{agent_id="known",method="tasks/get",status="error"}': 1,
    'broker_a2a_requests_total{agent_id="known",method="unknown",status="success"}': 2,
    'broker_a2a_requests_total{agent_id="down",method="message/send",status="error"}': 1,
    'broker_a2a_requests_total{agent_id="unknown",method="message/send",status="error"}': 2,
    // The agent's own -32002 is not the gateway's.
    'broker_a2a_errors_total{agent_id="known",error_code="agent"}': 1,
    'broker_a2a_errors_total{agent_id="down",error_code="-32003"}': 1,
    'broker_a2a_errors_total{agent_id="unknown",error_code="-32002"}': 1,
    'broker_a2a_errors_total{agent_id="unknown",error_code="-32600"}': 1,
    'broker_a2a_registry_operations_total{op="register",status="success"}': 2,
    'broker_a2a_registry_operations_total{op="register",status="error"}': 0,
    'broker_a2a_registry_operations_total{op="deregister",status="success"}': 0,
    'broker_a2a_registry_operations_total{op="deregister",status="error"}': 0,
    'broker_a2a_registry_operations_total{op="heartbeat",status="success"}': 0,
    'broker_a2a_registry_operations_total{op="heartbeat",status="error"}': 0,
    'broker_a2a_registry_operations_total{op="expire",status="success"}': 0,
    'broker_a2a_registry_operations_total{op="expire",status="error"}': 0,
    'broker_a2a_registry_operations_total{op="park",status="success"}': 0,
    'broker_a2a_registry_operations_total{op="park",status="error"}': 0,
  })
  expect(series['broker_a2a_request_duration_seconds_count{agent_id="known"}']).toBe(4)
  expect(series['broker_a2a_first_byte_seconds_count{agent_id="known"}']).toBe(4)
  // That they travel through the broker makes them no queries of users, and their channels none of theirs.
  expect(series['broker_messages_total{type="queries",direction="in"}']).toBe(0)
  expect(series['broker_messages_total{type="events_store",direction="out"}']).toBe(0)
  expect(series['broker_channels']).toBe(0)
})

test('A14 - the metrics of an agent disappear with it, and a request that ends later does not restore them', async () => {
  const { http, api } = await serve()
  const released = Promise.withResolvers<void>()
  const agent = await startAgent(async ({ method }, response) => {
    if (method === 'tasks/send') await released.promise
    response.end('{"jsonrpc":"2.0","id":1,"result":"yes"}')
  })
  await register(http.url, { agent_id: 'brief', name: 'Brief', url: agent.url })
  await callAgent(http.url, 'brief', 'message/send')
  const late = callAgent(http.url, 'brief', 'tasks/send')
  await expect.poll(() => agent.asked.length).toBe(2)
  const before = await scrape(api.url)
  expect(before['broker_a2a_requests_in_flight{agent_id="brief"}']).toBe(1)
  expect(before['broker_a2a_request_duration_seconds_count{agent_id="brief"}']).toBe(1)
  await fetch(`${http.url}/agents/brief`, { method: 'DELETE' })
  released.resolve()
  expect(await late).toMatchObject({ result: 'yes' })
  const after = await scrape(api.url)
  expect(Object.keys(after).filter((name) => name.includes('agent_id="brief"'))).toEqual([])
  expect(after['broker_a2a_requests_total{agent_id="unknown",method="tasks/send",status="success"}']).toBe(1)
})

test('metrics - the delay of the event loop shows a block', async () => {
  const { api } = await serve()
  const longestWhileBlocked = async () => {
    const until = performance.now() + 100
    while (performance.now() < until);
    return (await scrape(api.url))['broker_event_loop_lag_seconds{percentile="100"}']
  }
  // The first block after a scrape may come before the histogram's timer has run at all.
  await expect.poll(longestWhileBlocked, { timeout: 20_000 }).toBeGreaterThan(0.05)
  const page = await scrape(api.url)
  const median = page['broker_event_loop_lag_seconds{percentile="50"}']
  expect(median).toBeGreaterThanOrEqual(0)
  expect(page['broker_event_loop_delay_seconds{quantile="0.5"}']).toBe(median)
})

/** Keeps the event loop busy. */
function block(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

test('metrics - the utilization of the event loop is the share of busy time in the last window, for every scraper', async () => {
  const registry = new Registry()
  const windowMs = 200
  using measured = eventLoopMetrics(registry, windowMs)
  void measured
  const read = async () => {
    const text = await registry.getSingleMetricAsString('broker_event_loop_utilization')
    return Number(/^broker_event_loop_utilization (\S+)$/m.exec(text)?.[1])
  }
  block(2 * windowMs)
  // The timer of the window is late: it runs before this one.
  await new Promise((resolve) => setTimeout(resolve, 1))
  const busy = await read()
  expect(busy).toBeGreaterThan(0.9)
  block(windowMs / 4)
  expect(await read()).toBe(busy)
  await expect.poll(read, { timeout: 20_000 }).toBeLessThan(0.5)
})

test('metrics - the utilization of a server that has just started is that since its start', async () => {
  const { api } = await serve()
  block(100)
  const { broker_event_loop_utilization: utilization } = await scrape(api.url)
  expect(utilization).toBeGreaterThan(0)
  expect(utilization).toBeLessThanOrEqual(1)
})

test('metrics - two servers in a process count apart', async () => {
  const one = await serve()
  const two = await serve()
  await callTool(one.http.url, 'queue_send', { channel: 'q', body: 'x' })
  const key = 'broker_messages_total{type="queues",direction="in"}'
  expect((await scrape(one.api.url))[key]).toBe(1)
  expect((await scrape(two.api.url))[key]).toBe(0)
})

test('metrics - promtool accepts every name, deprecated ones included', async () => {
  const { api } = await serve()
  const page = await (await fetch(`${api.url}/metrics`)).text()
  const types = new Map([...page.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => [name, type]))
  const typed = [...types].filter(([, type]) => type !== 'untyped')
  // The rules of promtool that names can break, so that they are also checked where it is not installed.
  expect(typed.filter(([name, type]) => (type === 'counter') !== name.endsWith('_total'))).toEqual([])
  expect(typed.filter(([name]) => new RegExp(`^${name}\\{[^}]*quantile=`, 'm').test(page))).toEqual([])
  expect([...types].filter(([, type]) => type === 'untyped').map(([name]) => name)).toEqual([
    'broker_event_loop_delay_seconds',
    'nodejs_active_resources_total',
    'nodejs_active_handles_total',
    'nodejs_active_requests_total',
  ])
})

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
test.skipIf(!hasPromtool)('metrics - promtool itself accepts the page', async () => {
  const { api } = await serve()
  const page = await (await fetch(`${api.url}/metrics`)).text()
  const checked = spawnSync('promtool', ['check', 'metrics'], { input: page, encoding: 'utf8' })
  expect(checked).toMatchObject({ status: 0, stdout: '', stderr: '' })
})
