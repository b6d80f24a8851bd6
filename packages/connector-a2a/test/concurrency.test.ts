import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import { json, startAgent } from './agents.ts'
import { openGateway } from './gateway-host.ts'

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

test('A12, R9 - concurrency: calls that are still under way count when their agent is registered anew', async () => {
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
