import { AdmissionControl } from '@signalbox/http-kit'
import { HeldBytes } from '@signalbox/http-kit/internal'
import { AgentAddressPolicy, AgentConnections, AgentTarget } from '@signalbox/registry'
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

import type { AgentQuery } from '../src/requests/agent-query.ts'
import type { AgentReply } from '../src/requests/agent-reply.ts'
import type { CallResult } from '../src/subscriber/agent-call.ts'
import { AgentCall } from '../src/subscriber/agent-call.ts'
import { unreachable } from '../src/subscriber/agent-failures.ts'
import { ReplyBody } from '../src/subscriber/reply-body.ts'
import type { Script } from './agents.ts'
import { echo, startAgent } from './agents.ts'
import { openGateway } from './gateway-host.ts'

function open(resolve = async (): Promise<void> => {}): AgentConnections {
  const addressPolicy = new AgentAddressPolicy({
    resolve: async () => {
      await resolve()
      return [{ address: '127.0.0.1', family: 4 }]
    },
  })
  const connections = new AgentConnections({ tlsSkipVerify: false, addressPolicy })
  onTestFinished(() => connections.close())
  return connections
}

function query(id: number, more: Partial<AgentQuery> = {}): AgentQuery {
  const body = Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"message/send"}`)
  return { mode: 'call', body, callerId: 'me', account: 'client:me', timeoutMs: 10_000, hops: 1, headers: {}, ...more }
}

function call(
  target: AgentTarget,
  asked: AgentQuery,
): { readonly call: AgentCall; readonly result: Promise<CallResult> } {
  const { promise, resolve } = Promise.withResolvers<CallResult>()
  const held = new HeldBytes(new AdmissionControl(), 'client:me')
  const sent = new AgentCall(asked, new ReplyBody(held, 1_000_000), resolve, () => undefined)
  sent.send(target)
  return { call: sent, result: promise }
}

const statusOf = ({ reply }: { readonly reply: AgentReply }): number => reply.status

test('A2, A3 - connections: a call that ends while it waits for its connection is never sent', async () => {
  const agent = await startAgent()
  const resolved = Promise.withResolvers<void>()
  const target = new AgentTarget(
    `http://agent.test:${agent.port}/`,
    'client:me',
    open(() => resolved.promise),
  )
  const aborted = call(target, query(1))
  aborted.call.abort(unreachable('gone'))
  const late = call(target, query(2, { timeoutMs: 1 }))
  const sent = call(target, query(3))
  expect((await aborted.result).reply).toEqual(unreachable('gone'))
  expect((await late.result).reply.failure).toBe('timeout')
  resolved.resolve()
  expect(statusOf(await sent.result)).toBe(200)
  // The connections of the others are there to be used, and nothing came on them.
  for (let id = 4; id < 9; id++) expect(statusOf(await call(target, query(id)).result)).toBe(200)
  const ids = agent.asked.map(({ body }) => (JSON.parse(body) as { id: number }).id)
  expect(ids).toEqual([3, 4, 5, 6, 7, 8])
})

test('A3 - connections: idle ones are closed, an origin without any is forgotten, and opened again when it is called', async () => {
  const agent = await startAgent()
  const connections = open()
  const target = new AgentTarget(agent.url, 'client:me', connections)
  for (let round = 1; round <= 2; round++) {
    const calls = Array.from({ length: 5 }, (_, id) => call(target, query(id)).result.then(statusOf))
    expect(await Promise.all(calls)).toEqual([200, 200, 200, 200, 200])
    expect(connections.origins).toBe(1)
    await until(async () => (await agent.connections()) === 0 && connections.origins === 0)
  }
  await agent.close()
  expect((await call(target, query(1)).result).reply.failure).toBe('unreachable')
  await until(() => connections.origins === 0)
})

test('A5 - connections: a header of a Query that HTTP cannot carry, or that frames the message, is left out', async () => {
  const agent = await startAgent()
  const headers = {
    'x-ok': 'yes',
    'x-bad': 'a\r\nx-more: b',
    'bad name': 'x',
    'content-length': '1',
    'transfer-encoding': 'chunked',
    connection: 'close',
    expect: '100-continue',
    host: 'elsewhere',
  }
  const target = new AgentTarget(agent.url, 'client:me', open())
  expect(statusOf(await call(target, query(1, { headers })).result)).toBe(200)
  expect(agent.asked[0]?.headers).toEqual({
    host: `127.0.0.1:${agent.port}`,
    connection: 'keep-alive',
    'content-type': 'application/json',
    accept: 'application/json',
    'accept-encoding': 'identity',
    'x-broker-caller-id': 'me',
    'x-broker-hops': '1',
    'x-ok': 'yes',
    'content-length': String(query(1).body.length),
  })
})

test('A3 - connections: informational responses come before the answer, and are not it', async () => {
  const agent = await startAgent((asked, response, request) => {
    response.writeEarlyHints({ link: '</style.css>; rel=preload' })
    response.writeProcessing()
    return echo(asked, response, request)
  })
  const host = await openGateway()
  await host.register('agent-1', agent.url)
  for (let i = 0; i < 3; i++) expect(await host.call('agent-1')).toMatchObject({ result: { method: 'message/send' } })
  expect(await agent.connections()).toBe(1)
})

const STREAM = { method: 'POST', headers: { 'content-type': 'application/json' } }
const ASK = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} })

const says =
  (text: string): Script =>
  ({ socket }) =>
    socket.end(text)

test('A9 - connections: an aborted stream is distinguished from a complete one, with and without chunks', async () => {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n'
  const event = 'event: task.done\ndata: {"type":"done","payload":{}}\n'
  const chunk = `${event.length.toString(16)}\r\n${event}\r\n`
  const rows: [boolean, Script][] = [
    [true, says(`${head}Transfer-Encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`)],
    [false, says(`${head}Transfer-Encoding: chunked\r\n\r\n${chunk}`)],
    [true, says(`${head}Content-Length: ${event.length}\r\n\r\n${event}`)],
    [false, says(`${head}Content-Length: ${event.length + 1}\r\n\r\n${event}`)],
    [true, says(`${head}Content-Type: text/plain\r\nContent-Length: ${event.length}\r\n\r\n${event}`)],
    [true, says(`${head}Connection: close\r\n\r\n${event}`)],
  ]
  const host = await openGateway()
  const agent = await startAgent()
  await host.register('agent-1', agent.url)
  for (const [whole, script] of rows) {
    agent.script = script
    const text = await (await fetch(`${host.base}/a2a/agent-1`, { ...STREAM, body: ASK })).text()
    // A last event without its blank line counts only where the response has ended.
    expect(text).toContain(whole ? 'event: task.done\n' : 'event: task.error\n')
  }
  await until(() => host.connector.inFlight('agent-1') === 0)
})

test('A11 - connections: an agent is held back by its own connection when the client does not read', async () => {
  const line = `event: task.status\ndata: {"type":"status_update","payload":"${'x'.repeat(10_000)}"}\n\n`
  let written = 0
  const blocked = Promise.withResolvers<void>()
  const agent = await startAgent((_asked, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    let stalled: NodeJS.Timeout | undefined
    const write = (): void => {
      clearTimeout(stalled)
      while (written < 256 * 1024 * 1024) {
        written += line.length
        if (response.write(line)) continue
        stalled = setTimeout(() => blocked.resolve(), 1_000)
        response.once('drain', write)
        return
      }
      blocked.resolve()
    }
    write()
  })
  const host = await openGateway()
  await host.register('agent-1', agent.url)
  const response = await fetch(`${host.base}/a2a/agent-1`, { ...STREAM, body: ASK })
  await blocked.promise
  expect(written).toBeLessThan(64 * 1024 * 1024)
  await response.body?.cancel()
  await until(() => host.connector.inFlight('agent-1') === 0)
})
