import type { BrokerHandle } from '@signalbox/broker-core'
import { createBroker, encodeText } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { openNatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

import type { Webhooks } from '../src/index.ts'
import { openWebhooks } from '../src/index.ts'
import { openReceiver } from '@signalbox/testkit/webhook-receiver'
import { testOptions, toOrders } from './webhook-bench.ts'

/** A lease that does not end during a test. */
const LONG_LEASE_MS = 60_000

/** A lease that ends: short, so that the test does not wait for long. */
const SHORT_LEASE_MS = 1_500

async function openNode(system: BrokerHandle, leaseMs = LONG_LEASE_MS): Promise<Webhooks> {
  const webhooks = await openWebhooks(system, testOptions({ shared: true, leaseMs }))
  onTestFinished(() => webhooks.close(0))
  return webhooks
}

async function openEmbedded(): Promise<BrokerHandle> {
  const engine = await openEmbeddedEngine({ path: testFolder() })
  onTestFinished(() => engine.close())
  return createBroker(engine).system
}

test('cluster - one node serves a subscription, and every node shows and changes it', async () => {
  const system = await openEmbedded()
  const [one, two] = [await openNode(system), await openNode(system)]
  const receiver = await openReceiver()
  const { subscription } = await one.create(toOrders(receiver.url))
  await until(() => one.stats().served === 1)
  await system.eventsStore.publish('orders', { body: encodeText('one') })
  await until(() => receiver.bodies.length === 1)
  await until(async () => (await two.get(subscription.id)).next === 2)
  expect([one.stats().served, two.stats().served]).toEqual([1, 0])
  await two.redeliver(subscription.id, 1)
  await until(() => receiver.bodies.length === 2)
  await two.pause(subscription.id)
  await until(() => one.stats().served === 0)
  await two.delete(subscription.id)
  await until(() => one.list().length === 0)
})

test('cluster - another node continues at once when a node is stopped', async () => {
  const system = await openEmbedded()
  const [one, two] = [await openNode(system), await openNode(system)]
  const receiver = await openReceiver()
  await one.create(toOrders(receiver.url))
  await system.eventsStore.publish('orders', { body: encodeText('one') })
  await until(() => receiver.bodies.length === 1)
  await one.close()
  await system.eventsStore.publish('orders', { body: encodeText('two') })
  await until(() => receiver.bodies.length === 2)
  expect(receiver.bodies).toEqual(['one', 'two'])
  expect(two.stats().served).toBe(1)
})

test.skipIf(NATS_SERVER === undefined)(
  'cluster - a node without its store ends its delivery before another node repeats it',
  async () => {
    const nats = await NatsServer.start()
    onTestFinished(() => nats[Symbol.asyncDispose]())
    const engines = await Promise.all([1, 2].map(() => openNatsEngine({ servers: [nats.url], replicas: 1 })))
    onTestFinished(async () => {
      await Promise.all(engines.map((engine) => engine.close()))
    })
    const [first, second] = engines.map((engine) => createBroker(engine).system)
    if (first === undefined || second === undefined) throw new Error('two engines were opened')
    const one = await openNode(first, SHORT_LEASE_MS)
    await openNode(second, SHORT_LEASE_MS)
    const receiver = await openReceiver()
    let inFlight = 0
    let most = 0
    receiver.reply = (response) => {
      most = Math.max(most, ++inFlight)
      response.once('close', () => inFlight--)
      // The first delivery hangs.
      if (receiver.bodies.length > 1) response.writeHead(204).end()
    }
    await one.create(toOrders(receiver.url))
    for (const text of ['one', 'two']) await second.eventsStore.publish('orders', { body: encodeText(text) })
    await until(() => receiver.bodies.length === 1)
    const lostAt = performance.now()
    await engines[0]?.close()
    await until(() => receiver.bodies.length === 3)
    expect(receiver.bodies).toEqual(['one', 'one', 'two'])
    expect(most).toBe(1)
    expect(performance.now() - lostAt).toBeLessThan(SHORT_LEASE_MS + 20_000)
  },
)
