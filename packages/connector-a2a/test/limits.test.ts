import { AdmissionControl } from '@signalbox/http-kit'
import { fairTurns } from '@signalbox/http-kit/internal'
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test, vi } from 'vitest'

import type { Script } from './agents.ts'
import { hang, json, startAgent } from './agents.ts'
import type { GatewayHost } from './gateway-host.ts'
import { messageSend, openGateway } from './gateway-host.ts'

test('OUT-5, A3, LIMIT-3 - concurrency: of 101 calls to a slow agent exactly 100 reach it, and others answer meanwhile', async () => {
  const host = await openGateway()
  const waiting: (() => void)[] = []
  const slow = await startAgent((_asked, response) => waiting.push(() => json(response, '"done"')))
  const quick = await startAgent((_asked, response) => json(response, '"quick"'))
  await host.register('slow', slow.url)
  await host.register('quick', quick.url)
  const calls = Array.from({ length: 100 }, () => host.call('slow'))
  await slow.reached(100)
  expect(await host.call('slow')).toEqual({
    jsonrpc: '2.0',
    id: 1,
    error: { code: -32603, message: 'server busy: concurrency limit reached' },
  })
  const { executed, error, failure } = await host.requests.request('slow', Buffer.from('{}'), {
    caller: { clientId: 'test' },
  })
  expect({ executed, error, failure }).toEqual({
    executed: false,
    error: 'server busy: concurrency limit reached',
    failure: 'busy',
  })
  expect(host.connector.inFlight('slow')).toBe(100)
  for (let i = 0; i < 10; i++) expect(await host.call('quick')).toMatchObject({ result: 'quick' })
  expect(slow.asked).toHaveLength(100)
  for (const answer of waiting.splice(0)) answer()
  for (const answer of await Promise.all(calls)) expect(answer).toEqual({ jsonrpc: '2.0', id: 1, result: 'done' })
  expect(host.connector.inFlight('slow')).toBe(0)
  expect(host.finished.filter(({ errorCode }) => errorCode === '-32603')).toHaveLength(1)
})

test('A12, R9 - concurrency: calls in flight still count after their agent registers again', async () => {
  const host = await openGateway({ agentMaxConcurrency: 2 })
  const waiting: (() => void)[] = []
  const agent = await startAgent((_asked, response) => waiting.push(() => json(response, '"done"')))
  await host.register('agent-1', agent.url)
  const calls = [host.call('agent-1'), host.call('agent-1')]
  await agent.reached(2)
  await host.deregister('agent-1')
  expect(host.connector.inFlight('agent-1')).toBe(2)
  expect(await host.call('agent-1')).toMatchObject({ error: { code: -32002 } })
  await host.register('agent-1', agent.url)
  expect(await host.call('agent-1')).toMatchObject({ error: { code: -32603 } })
  for (const answer of waiting.splice(0)) answer()
  expect(await Promise.all(calls)).toMatchObject([{ result: 'done' }, { result: 'done' }])
  const again = host.call('agent-1')
  await until(() => waiting.length === 1)
  waiting[0]?.()
  expect(await again).toMatchObject({ result: 'done' })
})

const TIMEOUT = { error: { code: -32001, message: 'agent timeout' } }

async function timed<T>(work: Promise<T>): Promise<{ readonly value: T; readonly seconds: number }> {
  const begin = performance.now()
  const value = await work
  return { value, seconds: (performance.now() - begin) / 1000 }
}

test('A2, CODE-1 - deadline: timeout 1 on an agent that takes 2 s is -32001 after 1 s', async () => {
  const host = await openGateway()
  const agent = await startAgent((_asked, response) => void setTimeout(() => json(response, '{}'), 2_000).unref())
  await host.register('slow', agent.url)
  const { value, seconds } = await timed(host.call('slow', { configuration: { timeout: 1 } }))
  expect(value).toMatchObject(TIMEOUT)
  expect(seconds).toBeGreaterThan(0.95)
  expect(seconds).toBeLessThan(8)
})

test('A2, LIMIT-1 - deadline: without one it is the default, a larger one is capped, a fraction counts', async () => {
  const host = await openGateway({ timeouts: { defaultTimeoutMs: 300, maxTimeoutMs: 600 } })
  const agent = await startAgent(hang)
  await host.register('silent', agent.url)
  const rows: [object, number][] = [
    [{}, 0.3],
    [{ configuration: {} }, 0.3],
    [{ configuration: { timeout: 99_999 } }, 0.6],
    [{ configuration: { timeout: 1e300 } }, 0.6],
    [{ configuration: { timeout: 0.1 } }, 0.1],
    [{ configuration: { timeout: 1e-300 } }, 0],
  ]
  const done = await Promise.all(rows.map(([params]) => timed(host.call('silent', params))))
  for (const [i, { value, seconds }] of done.entries()) {
    const expected = rows[i]?.[1] ?? 0
    expect(value).toMatchObject(TIMEOUT)
    expect(seconds).toBeGreaterThan(expected - 0.05)
    expect(seconds).toBeLessThan(expected + 8)
  }
})

test('A2 - deadline: it is for the whole answer, however steadily its pieces come', async () => {
  const host = await openGateway({ timeouts: { defaultTimeoutMs: 300, maxTimeoutMs: 600 } })
  const agent = await startAgent((_asked, response) => {
    const timer = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(timer))
  })
  await host.register('drip', agent.url)
  const { value, seconds } = await timed(host.call('drip'))
  expect(value).toMatchObject(TIMEOUT)
  expect(seconds).toBeLessThan(8)
})

const ALL = 4_000_000

/** An anonymous caller may use half. */
const MINE = ALL / 2

const REPLY = JSON.stringify({ jsonrpc: '2.0', id: 1, result: 'x'.repeat(900_000) })

const BUSY = {
  code: -32603,
  message: `server busy: your network address has reached its limit of ${MINE} bytes of requests and answers (LIMITS_PROCESS_BODY_BYTES); finish some first, or try again later`,
}

interface Bench {
  readonly host: GatewayHost
  readonly admission: AdmissionControl
  readonly asked: () => number
  /** Sends the last byte of every reply that is held. */
  readonly finish: () => void
  readonly open: () => Promise<number>
}

/** An agent that sends its reply, with or without its length, but for the last byte. */
async function openBench(headers: Readonly<Record<string, string>>, memory = 0): Promise<Bench> {
  const held: (() => void)[] = []
  const script: Script = (_asked, response) => {
    response.writeHead(200, { 'content-type': 'application/json', ...headers })
    response.write(REPLY.slice(0, -1))
    held.push(() => response.end(REPLY.slice(-1)))
  }
  const agent = await startAgent(script)
  const limits = { process: { bodyBytes: ALL } }
  const admission = new AdmissionControl({ limits, measureMemory: () => memory })
  const host = await openGateway({ frontDoor: { admission } })
  await host.register('agent-1', agent.url)
  return {
    host,
    admission,
    asked: () => agent.asked.length,
    finish: () => held.splice(0).forEach((end) => end()),
    open: () => agent.connections(),
  }
}

test.each([
  ['with its length', { 'content-length': String(REPLY.length) }],
  ['in chunks', {}],
])('replies - replies %s count as bytes of their caller until their answers are written', async (_how, headers) => {
  const { host, admission, finish, open } = await openBench(headers)
  const refused: unknown[] = []
  // At most two fit. The other calls fail, and their connections to the agent are closed.
  const calls = Array.from({ length: 4 }, async () => {
    const { result, error } = await host.call('agent-1')
    if (error !== undefined) refused.push(error)
    return result
  })
  await until(() => refused.length >= 2 && admission.use.bodyBytes > 900_000)
  expect(refused).toEqual(refused.map(() => BUSY))
  expect(admission.use.bodyBytes).toBeLessThanOrEqual(MINE)
  await until(async () => (await open()) === calls.length - refused.length)
  finish()
  const results = (await Promise.all(calls)).filter((result) => result !== undefined)
  expect(results).toEqual(results.map(() => 'x'.repeat(900_000)))
  expect(results.length).toBe(calls.length - refused.length)
  await until(() => admission.use.bodyBytes === 0)
  expect(host.failures).toEqual([])
})

test('limits - the account of a large request rests after the node of the agent has read it', async () => {
  const host = await openGateway()
  const restAfter = vi.spyOn(fairTurns, 'restAfter')
  onTestFinished(() => restAfter.mockRestore())
  const rests: number[] = []
  const agent = await startAgent((_asked, response) => {
    rests.push(restAfter.mock.calls.filter(([account]) => account === 'client:large').length)
    json(response, '"done"')
  })
  await host.register('agent', agent.url)
  const ask = (bytes: number) => {
    const caller = { clientId: 'large', account: 'client:large' }
    return host.requests.request('agent', Buffer.from(JSON.stringify({ fill: 'x'.repeat(bytes) })), { caller })
  }
  await ask(10_000)
  await ask(8_000_000)
  expect(rests).toEqual([0, 1])
})

test('replies - the reply of a call whose client has left counts until it has ended', async () => {
  const { host, admission, finish } = await openBench({})
  const leaving = new AbortController()
  const left = fetch(`${host.base}/a2a/agent-1`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: messageSend(),
    signal: leaving.signal,
  }).catch(() => {})
  await until(() => admission.use.bodyBytes > 900_000)
  leaving.abort()
  await left
  await until(async () => (await host.connections()) === 0)
  expect(admission.use.bodyBytes).toBeGreaterThan(900_000)
  finish()
  await until(() => admission.use.bodyBytes === 0)
})

test('replies - no agent is called while memory is short', async () => {
  const { host, asked } = await openBench({}, 1)
  const { error } = await host.call('agent-1')
  expect(error).toEqual({ code: -32603, message: 'server busy: the server is short of memory; try again later' })
  expect(asked()).toBe(0)
})

test('replies - the event of a stream counts as bytes of its caller while it is read, and ends the stream over the limit', async () => {
  const event = `data: {"type":"message","payload":"${'x'.repeat(3_000_000)}`
  const agent = await startAgent((_asked, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(event)
  })
  const admission = new AdmissionControl({ limits: { process: { bodyBytes: ALL } } })
  const host = await openGateway({ frontDoor: { admission } })
  await host.register('agent-1', agent.url)
  const { text } = await host.post('agent-1', { jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} })
  const last = JSON.parse(text.slice(text.lastIndexOf('data: ') + 6)) as { readonly payload: unknown }
  expect(last.payload).toMatchObject({ code: BUSY.code, message: BUSY.message })
  await until(() => admission.use.bodyBytes === 0)
})
