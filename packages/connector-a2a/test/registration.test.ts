import { agentChannel } from '../src/requests/agent-query.ts'
import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import { a2aConnector } from '../src/index.ts'
import { json, result, startAgent } from './agents.ts'
import { openGateway } from './gateway-host.ts'

test(
  'GW-8 - registration: an agent can be called at its latest url from its registration until its deregistration',
  { timeout: 60_000 },
  async () => {
    const host = await openGateway()
    const [first, second] = [await startAgent(result('1')), await startAgent(result('2'))]
    await host.register('agent-1', first.url)
    expect(await host.call('agent-1')).toMatchObject({ result: 1 })
    await host.register('agent-1', second.url)
    expect(await host.call('agent-1')).toMatchObject({ result: 2 })
    await host.deregister('agent-1')
    expect(await host.call('agent-1')).toMatchObject({ error: { code: -32002 } })
    const subscribers = async () => (await host.engine.channels.info('queries', agentChannel('agent-1')))?.subscribers
    await until(async () => (await subscribers()) === 0)
    for (let i = 0; i < 20; i++) {
      await host.register('agent-1', first.url)
      const call = host.call('agent-1')
      await host.deregister('agent-1')
      await host.register('agent-1', second.url)
      // Which of the three it met, nobody can say; it does not wait for ever.
      const { result: met, error } = await call
      expect([1, 2, -32002]).toContain(met ?? error?.code)
      expect(await host.call('agent-1')).toMatchObject({ result: 2 })
      expect(await subscribers()).toBe(1)
      await host.deregister('agent-1')
    }
    await until(async () => (await subscribers()) === 0)
  },
)

test('GW-8, A3 - registration: a request in flight gets an error at once when its agent deregisters', async () => {
  const host = await openGateway()
  const agent = await startAgent(result('1'))
  await host.register('agent-1', agent.url)
  await host.deregister('agent-1')
  const begin = performance.now()
  const reply = await host.requests.request('agent-1', Buffer.from('{}'), { caller: { clientId: 'late' } })
  expect(reply).toMatchObject({ executed: false, failure: 'not_found' })
  expect(performance.now() - begin).toBeLessThan(5_000)
})

test(
  'GW-8 - registration: agents that were there before the gateway are served, two thousand of them too',
  { timeout: 120_000 },
  async () => {
    const host = await openGateway()
    const agent = await startAgent(({ url }, response) => json(response, JSON.stringify(url)))
    const owner = { clientId: 'anonymous', account: 'address:192.0.2.1' }
    const count = 2_000
    const before = performance.now()
    const ids = Array.from({ length: count }, (_, i) => `agent-${i}`)
    for (let i = 0; i < count; i += 500) {
      await Promise.all(
        ids
          .slice(i, i + 500)
          .map((id) => host.registry.register({ agent_id: id, name: id, url: agent.url + id }, owner)),
      )
    }
    const second = a2aConnector(host)
    expect(performance.now() - before).toBeLessThan(60_000)
    for (const id of ['agent-0', 'agent-999', 'agent-1999'])
      expect(await host.call(id)).toMatchObject({ result: `/${id}` })
    await second.close(0)
    for (const id of ['agent-1', 'agent-1000', 'agent-1998'])
      expect(await host.call(id)).toMatchObject({ result: `/${id}` })
  },
)

test('A18 - shutdown: calls in flight finish, new ones are 503, and unfinished ones get an error', async () => {
  const host = await openGateway()
  let answer: (() => void) | undefined
  const agent = await startAgent((_asked, response) => {
    answer = () => json(response, '"done"')
  })
  await host.register('agent-1', agent.url)
  const call = host.call('agent-1')
  await agent.reached(1)
  const closed = host.connector.close(5_000)
  const refused = await host.post('agent-1', '{"jsonrpc":"2.0","id":1,"method":"m"}')
  expect([refused.status, refused.headers.get('connection')]).toEqual([503, 'close'])
  expect(JSON.parse(refused.text)).toMatchObject({ error: { code: -32603 } })
  answer?.()
  expect(await call).toMatchObject({ result: 'done' })
  await closed

  const hurried = await openGateway()
  await hurried.register('agent-1', agent.url)
  const cut = hurried.call('agent-1')
  await agent.reached(2)
  await hurried.connector.close(50)
  expect(await cut).toMatchObject({
    error: { code: -32003, message: 'agent unavailable: this node is shutting down' },
  })
  await until(async () => (await agent.connections()) === 0)
})
