import { isSignedWith, answer, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import type { WebhookFormat } from '../src/index.ts'
import { abuseProtection } from '../src/index.ts'
import { openBench, toOrders } from './webhook-bench.ts'

const OLD = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
const NEW = `whsec_${Buffer.alloc(32, 2).toString('base64')}`

/** The notes of the subscription and the body; bodies that begin with `-` are left out. */
const NOTED: WebhookFormat = {
  name: 'noted',
  maxBatch: 1,
  goneEnds: 'delivery',
  maxAgeMs: 1,
  encode(_type, [message], { id, notes }) {
    const text = new TextDecoder().decode(message?.body)
    if (text.startsWith('-')) return undefined
    return { headers: { 'x-subscription': id }, body: Buffer.from(`${notes} ${text}`), id: `own-${text}` }
  },
  verify: abuseProtection,
}

test('put - creates a subscription with its id, and renews it with another secret at its position', async () => {
  const { webhooks, publish } = await openBench()
  const receiver = await openReceiver()
  const input = toOrders(receiver.url, { secret: OLD, expiresMs: Date.now() + 60_000 })
  expect(await webhooks.put('one', input)).toMatchObject({ id: 'one', next: 1 })
  await publish('orders', 'a')
  await until(() => receiver.received.length === 1)
  await until(async () => (await webhooks.get('one')).next === 2)
  const expiresMs = Date.now() + 120_000
  const renewed = await webhooks.put('one', { ...input, secret: NEW, expiresMs, start: 'first' })
  expect(renewed).toMatchObject({ id: 'one', next: 2, expiresMs, state: 'active' })
  await publish('orders', 'b')
  await until(() => receiver.received.length === 2)
  const [, second] = receiver.received
  expect(second?.body).toBe('b')
  expect(second && [isSignedWith(OLD, second), isSignedWith(NEW, second)]).toEqual([true, true])
  // The same secret again is no rotation, and the end can be taken away.
  const { expiresMs: _end, ...endless } = input
  expect(await webhooks.put('one', { ...endless, secret: NEW })).toMatchObject({ expiresMs: undefined })
})

test('put - another owner cannot renew a subscription', async () => {
  const { webhooks } = await openBench()
  const receiver = await openReceiver()
  await webhooks.put('one', toOrders(receiver.url))
  await expect(webhooks.put('one', toOrders(receiver.url, { owner: 'bob' }))).rejects.toMatchObject({
    code: 'SUBSCRIPTION_UNKNOWN',
  })
})

test('put - requests at the same time make one subscription, and it can be created again after its end', async () => {
  const { webhooks, publish } = await openBench()
  const receiver = await openReceiver()
  await Promise.all(Array.from({ length: 4 }, () => webhooks.put('one', toOrders(receiver.url))))
  expect(webhooks.list('alice')).toHaveLength(1)
  await webhooks.delete('one', 'alice')
  await publish('orders', 'a')
  await webhooks.put('one', toOrders(receiver.url))
  await publish('orders', 'b')
  await until(() => receiver.bodies.length === 1)
  expect(receiver.bodies).toEqual(['b'])
})

test('put - renewing activates a disabled subscription, and leaves a paused one', async () => {
  const { webhooks, publish } = await openBench()
  const receiver = await openReceiver()
  await webhooks.put('one', toOrders(receiver.url))
  receiver.reply = answer(410)
  await publish('orders', 'a')
  await until(async () => (await webhooks.get('one')).state === 'disabled')
  receiver.reply = answer(204)
  expect(await webhooks.put('one', toOrders(receiver.url))).toMatchObject({ state: 'active' })
  await until(async () => (await webhooks.get('one')).next === 2)
  await webhooks.pause('one')
  expect(await webhooks.put('one', toOrders(receiver.url))).toMatchObject({ state: 'paused' })
})

test('put - a format has the notes, its own delivery ids, and may leave messages out', async () => {
  const { webhooks, publish } = await openBench({ formats: [NOTED] })
  const receiver = await openReceiver()
  await webhooks.put('one', toOrders(receiver.url, { format: 'noted', notes: 'hello' }))
  await publish('orders', '-not', 'a')
  await until(() => receiver.received.length === 1)
  expect(receiver.received[0]).toMatchObject({
    body: 'hello a',
    headers: { 'webhook-id': 'own-a', 'x-subscription': 'one' },
  })
  await until(async () => (await webhooks.get('one')).next === 3)
})

test('put - 410 and a short time of retries can end one delivery', async () => {
  const { webhooks, publish, system } = await openBench({ formats: [NOTED] })
  const receiver = await openReceiver()
  await webhooks.put('one', toOrders(receiver.url, { format: 'noted' }))
  receiver.reply = (response, { body }) => {
    response.writeHead(body === ' gone' ? 410 : body === ' busy' ? 503 : 204).end()
  }
  await publish('orders', 'gone', 'busy', 'a')
  await until(() => receiver.bodies.includes(' a'))
  // The endpoint has the last request before the broker has its answer.
  await until(async () => (await webhooks.get('one')).state === 'active')
  const { deadLetterQueue } = await webhooks.get('one')
  expect(receiver.bodies).toEqual([' gone', ' busy', ' a'])
  const dead = await system.queues.peek(deadLetterQueue, { maxMessages: 10 })
  expect(dead.map(({ tags }) => tags['webhook_reason'])).toEqual([
    'the endpoint answered 410',
    'not delivered within 0.001 s: the endpoint answered 503',
  ])
})
