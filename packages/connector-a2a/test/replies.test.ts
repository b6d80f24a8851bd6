import { AdmissionControl } from '@signalbox/http-kit'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { startAgent } from './agents.ts'
import type { Script } from './agents.ts'
import type { GatewayHost } from './gateway-host.ts'
import { messageSend, openGateway } from './gateway-host.ts'

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
