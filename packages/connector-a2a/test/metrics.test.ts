import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import { always, json, result, startAgent } from './agents.ts'
import { openGateway } from './gateway-host.ts'

test('A14, GW-7 - metrics: each request is told with its agent, method, status, code and times', async () => {
  const host = await openGateway()
  const agent = await startAgent((_asked, response) => void setTimeout(() => json(response, '1'), 30))
  await host.register('agent-1', agent.url)
  const methods = ['message/send', 'tasks/get', 'tasks/cancel', 'tasks/send', 'message/sent', 'unknown', '__proto__']
  for (const method of methods) await host.call('agent-1', {}, method)
  expect(host.finished.map(({ method }) => method)).toEqual([...methods.slice(0, 4), 'unknown', 'unknown', 'unknown'])
  for (const { agentId, status, errorCode, seconds, firstByteSeconds } of host.finished.splice(0)) {
    expect([agentId, status, errorCode]).toEqual(['agent-1', 'success', undefined])
    expect(seconds).toBeGreaterThan(0.025)
    expect(firstByteSeconds).toBe(seconds)
  }
  const outcomes: [ReturnType<typeof always>, string][] = [
    [always('x'), '-32004'],
    [always('', 503), '-32003'],
    [always('', 400), '-32003'],
    [always('{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"mine"}}'), 'agent'],
  ]
  for (const [script, errorCode] of outcomes) {
    agent.script = script
    await host.call('agent-1')
    expect(host.finished.splice(0)).toMatchObject([{ agentId: 'agent-1', status: 'error', errorCode }])
  }
  await host.call('nobody')
  await host.call('Not-An-Id')
  expect(host.finished.splice(0)).toMatchObject([
    { agentId: 'unknown', method: 'message/send', errorCode: '-32002' },
    { agentId: 'unknown', method: 'message/send', errorCode: '-32600' },
  ])
})

test('A14 - metrics: hooks that throw disturb nobody', async () => {
  const host = await openGateway({
    hooks: {
      requestFinished() {
        throw new Error('hook')
      },
      failed() {
        throw new Error('hook')
      },
    },
  })
  const agent = await startAgent(result('1'))
  await host.register('agent-1', agent.url)
  expect(await host.call('agent-1')).toMatchObject({ result: 1 })
  await until(() => host.connector.inFlight('agent-1') === 0)
})
