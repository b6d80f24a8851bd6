import { encodeText } from '@signalbox/broker-core'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { answer, isSignedWith, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { openBench, toOrders } from './webhook-bench.ts'

test('delivery - an endpoint gets the entries of an events store in order, each with a signature', async () => {
  const { webhooks, publish } = await openBench()
  const receiver = await openReceiver()
  await publish('orders', 'before')
  const { subscription, secret = '' } = await webhooks.create(toOrders(receiver.url))
  expect(subscription).toMatchObject({ owner: 'alice', state: 'active', ordered: true, next: 2 })
  await publish('orders', 'one', 'two', 'three')
  await until(() => receiver.bodies.length === 3)
  expect(receiver.bodies).toEqual(['one', 'two', 'three'])
  for (const [i, each] of receiver.received.entries()) {
    expect(isSignedWith(secret, each)).toBe(true)
    expect(each.headers['webhook-id']).toBe(`msg_${subscription.id}_${i + 2}`)
  }
  await until(async () => (await webhooks.get(subscription.id)).next === 5)
})

test('delivery - a subscription starts at the first entry, or at a sequence', async () => {
  const { webhooks, publish } = await openBench()
  const [first, third] = [await openReceiver(), await openReceiver()]
  await publish('orders', 'one', 'two', 'three')
  await webhooks.create(toOrders(first.url, { start: 'first' }))
  await webhooks.create(toOrders(third.url, { start: 3 }))
  await until(() => first.bodies.length === 3 && third.bodies.length === 1)
  expect(first.bodies).toEqual(['one', 'two', 'three'])
  expect(third.bodies).toEqual(['three'])
})

test('delivery - a restart continues after the last accepted entry', async () => {
  const { webhooks, publish, restart } = await openBench()
  const receiver = await openReceiver()
  const { subscription } = await webhooks.create(toOrders(receiver.url))
  await publish('orders', 'one')
  await until(async () => (await webhooks.get(subscription.id)).next === 2)
  const again = await restart()
  await publish('orders', 'two')
  await until(() => receiver.bodies.length === 2)
  expect(receiver.bodies).toEqual(['one', 'two'])
  expect(again.list('alice')).toMatchObject([{ id: subscription.id, state: 'active' }])
})

test('retry - a failed delivery is repeated with the same id, and later entries wait for it', async () => {
  const { webhooks, publish } = await openBench()
  const receiver = await openReceiver()
  const held: (() => void)[] = []
  receiver.reply = (response, received) => {
    if (receiver.received.length === 1) answer(503)(response, received)
    else held.push(() => answer(204)(response, received))
  }
  const { subscription } = await webhooks.create(toOrders(receiver.url))
  await publish('orders', 'one', 'two')
  await until(() => held.length === 1)
  expect(await webhooks.get(subscription.id)).toMatchObject({ state: 'failing', reason: 'the endpoint answered 503' })
  receiver.reply = answer(204)
  held[0]?.()
  await until(() => receiver.bodies.length === 3)
  expect(receiver.bodies).toEqual(['one', 'one', 'two'])
  const [first, second] = receiver.received
  expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
  await until(async () => (await webhooks.get(subscription.id)).state === 'active')
})

test('retry - a restart during the retries delivers the same entry', async () => {
  const { webhooks, publish, restart } = await openBench()
  const receiver = await openReceiver()
  receiver.reply = answer(500)
  await webhooks.create(toOrders(receiver.url))
  await publish('orders', 'one', 'two')
  await until(() => receiver.bodies.length === 1)
  await restart()
  await until(() => receiver.bodies.length === 2)
  receiver.reply = answer(204)
  await until(() => receiver.bodies.includes('two'))
  expect(new Set(receiver.bodies.slice(0, -1))).toEqual(new Set(['one']))
})

test('dead letters - a refused message moves to the dead-letter queue with the reason, and the next one follows', async () => {
  const { webhooks, publish, system } = await openBench()
  const receiver = await openReceiver()
  receiver.reply = (response, received) =>
    answer(
      received.body === 'bad' ? 422 : 204,
      {},
      received.body === 'bad' ? 'x'.repeat(10_000) : '',
    )(response, received)
  const { subscription } = await webhooks.create(toOrders(receiver.url))
  await publish('orders', 'bad', 'good')
  await until(() => receiver.bodies.length === 2)
  const [letter] = await system.queues.receive(subscription.deadLetterQueue, { waitMs: 20_000 })
  expect(letter?.message.body).toEqual(encodeText('bad'))
  expect(letter?.message.tags).toEqual({
    webhook_subscription: subscription.id,
    webhook_source: 'orders',
    webhook_reason: 'the endpoint answered 422',
    webhook_attempts: '1',
    webhook_sequence: '1',
    webhook_status: '422',
    webhook_answer: 'x'.repeat(4_096),
  })
})

test('dead letters - a message that is too old after its attempts moves to the dead-letter queue', async () => {
  const { webhooks, publish, system } = await openBench({ maxAgeMs: 100 })
  const receiver = await openReceiver()
  receiver.reply = answer(500)
  const { subscription } = await webhooks.create(toOrders(receiver.url))
  await publish('orders', 'one')
  const [letter] = await system.queues.receive(subscription.deadLetterQueue, { waitMs: 20_000 })
  expect(letter?.message.tags).toMatchObject({
    webhook_reason: 'not delivered within 0.1 s: the endpoint answered 500',
  })
})

test('delivery - 410 disables the subscription, and resuming it repeats the message', async () => {
  const { webhooks, publish } = await openBench()
  const receiver = await openReceiver()
  receiver.reply = answer(410)
  const { subscription } = await webhooks.create(toOrders(receiver.url))
  await publish('orders', 'one', 'two')
  await until(async () => (await webhooks.get(subscription.id)).state === 'disabled')
  expect(await webhooks.get(subscription.id)).toMatchObject({ reason: 'the endpoint answered 410: it is gone' })
  expect(receiver.bodies).toEqual(['one'])
  receiver.reply = answer(204)
  await webhooks.resume(subscription.id)
  await until(() => receiver.bodies.length === 3)
  expect(receiver.bodies).toEqual(['one', 'one', 'two'])
})

test('delivery - a redirect is not followed', async () => {
  const { webhooks, publish } = await openBench()
  const [receiver, other] = [await openReceiver(), await openReceiver()]
  receiver.reply = answer(307, { location: other.url })
  await webhooks.create(toOrders(receiver.url))
  await publish('orders', 'one')
  await until(() => receiver.bodies.length === 2)
  expect(other.bodies).toEqual([])
})

test('delivery - a paused subscription gets nothing, and a resumed one gets what it missed', async () => {
  const { webhooks, publish } = await openBench()
  const receiver = await openReceiver()
  const { subscription } = await webhooks.create(toOrders(receiver.url))
  expect(await webhooks.pause(subscription.id)).toMatchObject({ state: 'paused' })
  await publish('orders', 'one', 'two')
  await until(() => webhooks.stats().served === 0)
  await webhooks.resume(subscription.id)
  await until(() => receiver.bodies.length === 2)
  expect(receiver.bodies).toEqual(['one', 'two'])
})

test('delivery - redelivery starts again from a sequence', async () => {
  const { webhooks, publish } = await openBench()
  const receiver = await openReceiver()
  const { subscription } = await webhooks.create(toOrders(receiver.url))
  await publish('orders', 'one', 'two', 'three')
  await until(async () => (await webhooks.get(subscription.id)).next === 4)
  await webhooks.redeliver(subscription.id, 2)
  await until(() => receiver.bodies.length === 5)
  expect(receiver.bodies.slice(3)).toEqual(['two', 'three'])
})

test('delivery - without order several messages are under way, and the position passes all of them', async () => {
  const { webhooks, publish } = await openBench()
  const receiver = await openReceiver()
  const held: (() => void)[] = []
  receiver.reply = (response, received) => void held.push(() => answer(204)(response, received))
  const { subscription } = await webhooks.create(toOrders(receiver.url, { ordered: false }))
  await publish('orders', ...Array.from({ length: 20 }, (_, i) => `m${i}`))
  await until(() => held.length === 16)
  for (const release of held.splice(0).toReversed()) release()
  await until(() => held.length === 4)
  for (const release of held.splice(0)) release()
  await until(async () => (await webhooks.get(subscription.id)).next === 21)
  expect(receiver.bodies).toHaveLength(20)
})

test('delivery - a batch has several messages, and a refused batch is repeated one by one', async () => {
  const { webhooks, publish, system } = await openBench()
  const receiver = await openReceiver()
  receiver.reply = (response, received) => answer(received.body.includes('bad') ? 400 : 204)(response, received)
  await publish('orders', 'a', 'bad', 'c', 'd')
  const { subscription } = await webhooks.create(toOrders(receiver.url, { format: 'lines', start: 'first' }))
  await until(async () => (await webhooks.get(subscription.id)).next === 5)
  expect(receiver.bodies.filter((body) => body === 'bad')).toHaveLength(1)
  expect(new Set(receiver.bodies.flatMap((body) => body.split('\n')))).toEqual(new Set(['a', 'bad', 'c', 'd']))
  const letters = await system.queues.receive(subscription.deadLetterQueue, { waitMs: 20_000, maxMessages: 10 })
  expect(letters.map(({ message }) => new TextDecoder().decode(message.body))).toEqual(['bad'])
})

test('filter - only messages for which the expression is true are delivered', async () => {
  const { webhooks, system } = await openBench()
  const receiver = await openReceiver()
  const { subscription } = await webhooks.create(toOrders(receiver.url, { filter: "kind = 'paid'" }))
  for (const kind of ['paid', 'open', 'paid']) {
    await system.eventsStore.publish('orders', { body: encodeText(kind), tags: { ce_kind: kind } })
  }
  await until(() => receiver.bodies.length === 2)
  await until(async () => (await webhooks.get(subscription.id)).next === 4)
  expect(receiver.bodies).toEqual(['paid', 'paid'])
})

test('policy - a subscription is disabled when its owner may no longer subscribe', async () => {
  let allowed = true
  const { webhooks, publish } = await openBench({ permits: () => allowed })
  const receiver = await openReceiver()
  const { subscription } = await webhooks.create(toOrders(receiver.url))
  await publish('orders', 'one')
  await until(() => receiver.bodies.length === 1)
  allowed = false
  await publish('orders', 'two')
  await until(async () => (await webhooks.get(subscription.id)).state === 'disabled')
  expect(receiver.bodies).toEqual(['one'])
})

test('delivery - a channel that is deleted and used again is delivered from its new first entry', async () => {
  const { webhooks, publish, system } = await openBench()
  const receiver = await openReceiver()
  const { subscription } = await webhooks.create(toOrders(receiver.url))
  await publish('orders', 'one', 'two')
  await until(async () => (await webhooks.get(subscription.id)).next === 3)
  await system.channels.delete('events_store', 'orders')
  await publish('orders', 'again')
  await until(() => receiver.bodies.length === 3)
  expect(receiver.bodies).toEqual(['one', 'two', 'again'])
})
