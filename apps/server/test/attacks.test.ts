import { Agent, request } from 'node:http'
import { text as readText } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'

import { describe, expect, onTestFinished, test, vi } from 'vitest'

import { register, silent, startAgent } from './support/agent.ts'
import { startCli } from './support/cli.ts'

/** Where the attacker is, and the other caller: without authentication a caller is an address. */
const ATTACKER = '127.1.0.1'
const HONEST = '127.0.0.2'

const JSON_TYPE = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const STRUCTURED = { 'content-type': 'application/cloudevents+json' }

interface Answer {
  readonly status: number
  readonly text: string
}

type Ask = (method: string, path: string, headers?: Record<string, string>, body?: string) => Promise<Answer>

/** Asks from an address, over connections of its own. */
function askFrom(localAddress: string, base: string): { readonly ask: Ask; readonly breakOff: () => void } {
  const agent = new Agent({ keepAlive: true, localAddress })
  const breakOff = (): void => agent.destroy()
  onTestFinished(breakOff)
  const ask = (method: string, path: string, headers: Record<string, string> = {}, body = ''): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }
      const asked = request(new URL(path, base), { method, agent, localAddress, headers: { ...headers, ...length } })
      asked.on('error', reject)
      asked.once('response', (response) => {
        const { statusCode: status = 0 } = response
        // A stream has no end: its head is the answer.
        if (response.headers['content-type']?.startsWith('text/event-stream') === true) {
          response.on('error', () => {}).resume()
          resolve({ status, text: 'stream' })
        } else readText(response).then((text) => resolve({ status, text }), reject)
      })
      asked.end(body)
    })
  return { ask, breakOff }
}

function tool(ask: Ask, name: string, args: object): Promise<Answer> {
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
  return ask('POST', '/mcp', JSON_TYPE, JSON.stringify(call))
}

interface Attacked {
  readonly http: string
  readonly attacker: Ask
}

/** Attacks a server in a process of its own, while another caller sends messages and receives them. */
async function attacked(env: Record<string, string>, strike: (attacked: Attacked) => Promise<void>): Promise<void> {
  const server = startCli({ env: { LOG_LEVEL: 'error', ...env } })
  const { http, api } = await server.ready()
  const { ask: honest } = askFrom(HONEST, http)
  const { ask: attacker, breakOff } = askFrom(ATTACKER, http)
  const answers: string[] = []
  const over = new AbortController()
  const serving = (async () => {
    while (!over.signal.aborted) {
      for (const [name, args] of [
        ['queue_send', { channel: 'honest', body: 'x' }],
        ['queue_receive', { channel: 'honest', max_messages: 1 }],
      ] as const) {
        const { status, text } = await tool(honest, name, args)
        answers.push(`${status} ${text.includes('"isError":false') ? 'served' : text}`)
      }
      await pause(5)
    }
  })()
  // Where the attack fails, that is what is reported.
  serving.catch(() => {})
  await strike({ http, attacker })
  breakOff()
  await vi.waitFor(async () => expect(await held(api)).toEqual([]), 30_000)
  over.abort()
  await serving
  expect(new Set(answers)).toEqual(new Set(['200 served']))
  expect(server.child.exitCode).toBeNull()
}

/** What is held of the process's limits; the scrape itself is a request, and the other caller has one. */
async function held(api: string): Promise<readonly string[]> {
  const page = await (await fetch(`${api}/metrics`)).text()
  const uses = [...page.matchAll(/^broker_limit_use\{limit="(\w+)"\} (\d+)$/gm)]
  expect(uses.length).toBeGreaterThan(3)
  return uses.filter(([, limit, use]) => Number(use) > (OWN_USE[limit ?? ''] ?? 0)).map(([line]) => line)
}

const OWN_USE: Readonly<Record<string, number>> = { process_requests: 2, process_body_bytes: 500 }

/** Waits until so many of the requests, or more, were refused; the others wait. */
async function refusedOf(requests: readonly Promise<Answer>[], refused: number): Promise<void> {
  const seen: number[] = []
  for (const one of requests) {
    one.then(
      ({ status }) => seen.push(status),
      () => {},
    )
  }
  await vi.waitFor(() => expect(seen.length).toBeGreaterThanOrEqual(refused), 30_000)
  expect(new Set(seen)).toEqual(new Set([429]))
}

function event(members: string): string {
  return `{"specversion":"1.0","id":"1","source":"/","type":"t","subject":"c"${members}}`
}

const EVENTS = { accept: 'text/event-stream' }
const STREAMS = ['/mcp', '/ce/subscribe/events?channel=c']

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

describe('attacks - on a running server', () => {
  test('attacks - hostile input is refused, the process lives, and another caller is served', async () => {
    const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`
    const agent = await startAgent((_asked, response) => {
      response.setHeader('content-type', 'application/json')
      response.end(`{"jsonrpc":"2.0","id":1,"result":${deep}}`)
    })
    await attacked({}, async ({ http, attacker }) => {
      await register(http, { agent_id: 'deep', name: 'Deep', url: agent.url })
      const send = await tool(attacker, 'agent_send', { agent_id: 'deep', message: 'x' })
      const query = await tool(attacker, 'agent_query', { agent_id: 'deep', method: 'tasks/get' })
      for (const { text } of [send, query]) expect(text).toContain('INVALID_RESPONSE')
      const call = '{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}'
      expect((await attacker('POST', '/a2a/deep', JSON_TYPE, call)).text).toContain('-32004')

      const attributes = times(300, (index) => `,"a${index}":"x"`).join('')
      const objects = `,"data":[${'{},'.repeat(1_000_000)}{}]`
      const batch = `[${times(1_001, () => event('')).join(',')}]`
      const refused = [
        await attacker('POST', '/ce/send/event', STRUCTURED, event(`,"data":${deep}`)),
        await attacker('POST', '/ce/send/event', STRUCTURED, event(attributes)),
        await attacker('POST', '/ce/send/event', STRUCTURED, event(objects)),
        await attacker('POST', '/ce/send/event', { 'content-type': 'application/cloudevents-batch+json' }, batch),
        await attacker('POST', '/mcp', { ...JSON_TYPE, origin: `http://[${'1:'.repeat(5_000)}x` }, call),
        await attacker('POST', '/mcp', { 'content-type': `application/json${';'.repeat(10_000)}` }, call),
        await attacker('GET', '/agents', { host: 'evil.example' }),
        await attacker('GET', '/ce/subscribe/commands?channel=honest', { 'sec-fetch-site': 'cross-site' }),
      ]
      expect(refused.map(({ status }) => status)).toEqual([400, 400, 400, 400, 403, 400, 403, 403])
    })
  })

  test('attacks - one address gets half of the requests, streams and bytes; another caller is served meanwhile', async () => {
    const env = {
      LIMITS_PROCESS_REQUESTS_IN_FLIGHT: '240',
      LIMITS_PROCESS_STREAMS: '240',
      LIMITS_PROCESS_BODY_BYTES: '4000000',
    }
    const agent = await startAgent(silent)
    await attacked(env, async ({ http, attacker }) => {
      await register(http, { agent_id: 'silent', name: 'Silent', url: agent.url })
      const streams = await Promise.all(times(150, (index) => attacker('GET', STREAMS[index % 2] ?? '', EVENTS)))
      expect(streams.filter(({ status }) => status === 200)).toHaveLength(120)
      expect(streams.filter(({ status }) => status === 429)).toHaveLength(30)
      // Small as text, and too much as values that a waiting call keeps.
      const values = times(30_000, () => [])
      const query = { agent_id: 'silent', method: 'm', params: { values } }
      expect((await tool(attacker, 'agent_query', query)).status).toBe(429)
      const command = { channel: 'nobody', body: 'x'.repeat(600_000), timeout_seconds: 60 }
      await refusedOf(
        times(8, () => tool(attacker, 'command_send', command)),
        5,
      )
      const poll = { channel: 'empty', max_messages: 1, wait_timeout_seconds: 60 }
      await refusedOf(
        times(150, () => tool(attacker, 'queue_receive', poll)),
        30,
      )
    })
  })
})
