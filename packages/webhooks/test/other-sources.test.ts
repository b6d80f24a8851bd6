import { encodeText } from '@signalbox/broker-core'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { answer, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { openBench } from './webhook-bench.ts'

const QUEUE = { owner: 'alice', type: 'queues', channel: 'jobs', format: 'plain' } as const
const EVENTS = { owner: 'alice', type: 'events', channel: 'news', format: 'plain' } as const

test('queues - a message leaves the queue when the endpoint accepts it', async () => {
  const { webhooks, system } = await openBench()
  const receiver = await openReceiver()
  const held: (() => void)[] = []
  receiver.reply = (response, received) => void held.push(() => answer(204)(response, received))
  const { subscription } = await webhooks.create({ ...QUEUE, endpoint: receiver.url })
  expect(subscription).toMatchObject({ ordered: false })
  const { id } = await system.queues.send('jobs', { body: encodeText('one') })
  await until(() => held.length === 1)
  expect((await system.channels.info('queues', 'jobs')).queue).toMatchObject({ inFlight: 1 })
  held[0]?.()
  await until(async () => (await system.channels.info('queues', 'jobs')).queue?.inFlight === 0)
  expect(receiver.received[0]?.headers['webhook-id']).toBe(`msg_${subscription.id}_${id}`)
})

test('queues - a message keeps its lease during the retries', async () => {
  const { webhooks, system } = await openBench()
  const receiver = await openReceiver()
  receiver.reply = (response, received) => answer(receiver.received.length === 1 ? 500 : 204)(response, received)
  await webhooks.create({ ...QUEUE, endpoint: receiver.url })
  await system.queues.send('jobs', { body: encodeText('one') })
  await until(() => receiver.bodies.length === 2)
  await until(async () => {
    const { queue } = await system.channels.info('queues', 'jobs')
    return queue?.inFlight === 0 && queue.waiting === 0
  })
  expect(receiver.bodies).toEqual(['one', 'one'])
})

test('queues - a refused message moves to the dead-letter queue of the subscription', async () => {
  const { webhooks, system } = await openBench()
  const receiver = await openReceiver()
  receiver.reply = answer(413)
  const { subscription } = await webhooks.create({ ...QUEUE, endpoint: receiver.url })
  await system.queues.send('jobs', { body: encodeText('one') })
  const [letter] = await system.queues.receive(subscription.deadLetterQueue, { waitMs: 20_000 })
  expect(letter?.message.tags).toMatchObject({ webhook_status: '413', webhook_source: 'jobs' })
  await until(async () => (await system.channels.info('queues', 'jobs')).queue?.inFlight === 0)
})

test('queues - the message of a deleted subscription returns to the queue', async () => {
  const { webhooks, system } = await openBench()
  const receiver = await openReceiver()
  receiver.reply = answer(500)
  const { subscription } = await webhooks.create({ ...QUEUE, endpoint: receiver.url })
  await system.queues.send('jobs', { body: encodeText('one') })
  await until(() => receiver.bodies.length === 1)
  await webhooks.delete(subscription.id, 'alice')
  const [delivery] = await system.queues.receive('jobs', { waitMs: 20_000 })
  expect(delivery?.message.body).toEqual(encodeText('one'))
})

test('queues - a filter and a start are refused', async () => {
  const { webhooks } = await openBench()
  const endpoint = 'https://example.com/'
  for (const more of [{ filter: "type = 'x'" }, { start: 'first' as const }]) {
    await expect(webhooks.create({ ...QUEUE, endpoint, ...more })).rejects.toMatchObject({
      code: 'SUBSCRIPTION_INVALID',
    })
  }
})

test('events - an event reaches the endpoint while the subscription exists', async () => {
  const { webhooks, system } = await openBench()
  const receiver = await openReceiver()
  await webhooks.create({ ...EVENTS, endpoint: receiver.url })
  await until(async () => {
    await system.events.publish('news', { body: encodeText('one') })
    return receiver.bodies.length > 0
  })
  expect(receiver.bodies[0]).toBe('one')
})

test('events - events that no longer fit are dropped and counted', async () => {
  let dropped = 0
  const { webhooks, system } = await openBench({ hooks: { dropped: () => dropped++ } })
  const receiver = await openReceiver()
  receiver.reply = () => {}
  await webhooks.create({ ...EVENTS, endpoint: receiver.url, ordered: true })
  await until(async () => {
    await system.events.publish('news', { body: encodeText('one') })
    return receiver.bodies.length > 0
  })
  for (let i = 0; i < 1_100; i++) await system.events.publish('news', { body: encodeText('more') })
  await until(() => dropped >= 50)
  expect(receiver.bodies).toHaveLength(1)
})
