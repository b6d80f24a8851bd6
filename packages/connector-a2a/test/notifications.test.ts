import { once } from 'node:events'

import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import { always, hang, json, startAgent } from './agents.ts'
import { openGateway } from './gateway-host.ts'
import { RawConnection } from './raw-connection.ts'

const NOTE = '{"jsonrpc":"2.0","method":"tasks/note","params":{"n":1}}'

test("A6, GW-6 - notification: it is forwarded, and answered 202 and empty, whatever the agent's state", async () => {
  const host = await openGateway({ agentMaxConcurrency: 1 })
  const agent = await startAgent()
  await host.register('good', agent.url)
  await host.register('dead', 'http://127.0.0.1:1/')
  const silent = await startAgent(hang)
  await host.register('busy', silent.url)
  const waiting = host.call('busy')
  await silent.reached(1)
  for (const [agentId, body] of [
    ['good', NOTE],
    ['dead', NOTE],
    ['busy', NOTE],
    ['nobody', NOTE],
    ['good', '{"jsonrpc":"2.0","method":"message/stream"}'],
    ['good', '{"jsonrpc":"2.0","method":"m","params":{"configuration":{"timeout":-1}}}'],
  ] as const) {
    const answer = await host.post(agentId, body)
    expect([agentId, answer.status, answer.text]).toEqual([agentId, 202, ''])
    expect(answer.headers.get('content-length')).toBe('0')
  }
  await agent.reached(3)
  expect(agent.asked.map(({ body }) => body)).toContain(NOTE)
  expect(agent.asked[0]?.headers['x-broker-caller-id']).toBe('anonymous')
  await until(() => host.finished.length === 6)
  expect(new Set(host.finished.map(({ agentId, status, errorCode }) => `${agentId} ${status} ${errorCode}`))).toEqual(
    new Set(['good success undefined', 'dead success undefined', 'busy error -32603', 'unknown error -32002']),
  )
  // Where it could never arrive, an error is told.
  expect(JSON.parse((await host.post('Not-An-Id', NOTE)).text)).toMatchObject({ id: null, error: { code: -32600 } })
  silent.script = always('{}')
  await silent.close()
  await waiting
  await until(() => ['good', 'dead', 'busy'].every((id) => host.connector.inFlight(id) === 0))
})

test('A6, M12 - notification: its caller does not wait for the agent, which counts it as any call', async () => {
  const host = await openGateway({ agentMaxConcurrency: 2 })
  const agent = await startAgent(hang)
  await host.register('slow', agent.url)
  expect((await host.post('slow', NOTE)).status).toBe(202)
  expect((await host.post('slow', NOTE)).status).toBe(202)
  await agent.reached(2)
  expect(host.connector.inFlight('slow')).toBe(2)
  expect(await host.call('slow')).toMatchObject({ error: { message: 'server busy: concurrency limit reached' } })
})

test('A16 - a caller that goes away does not cut its call off; the answer is dropped, and nothing stays behind', async () => {
  const host = await openGateway()
  const answers: (() => void)[] = []
  const agent = await startAgent((_asked, response) => answers.push(() => json(response, '{}')))
  await host.register('agent-1', agent.url)
  const connection = await RawConnection.open(host.port)
  connection.post('agent-1', '{"jsonrpc":"2.0","id":1,"method":"m"}')
  await agent.reached(1)
  connection.socket.resetAndDestroy()
  await until(async () => (await host.connections()) === 0)
  expect(host.connector.inFlight('agent-1')).toBe(1)
  const closed = once(agent.asked[0]?.socket ?? connection.socket, 'close')
  for (const answer of answers) answer()
  await until(() => host.connector.inFlight('agent-1') === 0 && host.finished.length === 1)
  expect(host.finished).toMatchObject([{ agentId: 'agent-1', status: 'success' }])
  expect(host.failures).toEqual([])
  // An idle connection is not kept for long: a server that closes it at the same moment would lose a request.
  await closed
})
