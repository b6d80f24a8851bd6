import type { BrokerHandle } from '@signalbox/broker-core'
import { createBroker, encodeText } from '@signalbox/broker-core'
import type { Engine } from '@signalbox/broker-core/engine'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { openNatsEngine } from '@signalbox/engine-nats'
import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { answer, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { describe, expect, onTestFinished, test } from 'vitest'

import { FailedAttempts } from '../src/delivery/progress.ts'
import type { NewSubscription, WebhookOptions, Webhooks } from '../src/index.ts'
import { openWebhooks } from '../src/index.ts'
import { MAX_IN_FLIGHT } from '../src/sources/source.ts'
import { testOptions, toOrders } from './webhook-bench.ts'

interface Started {
  readonly system: BrokerHandle
  readonly webhooks: Webhooks
  /** The attempts of this broker that have a result. */
  readonly attempts: () => number
  readonly stop: () => Promise<void>
}

/** Opens an engine over a store, which another one may have written. */
type OpenEngine = () => Promise<Engine>

async function embedded(): Promise<OpenEngine> {
  const path = testFolder()
  return () => openEmbeddedEngine({ path })
}

async function nats(): Promise<OpenEngine> {
  const server = await NatsServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  return () => openNatsEngine({ servers: [server.url], replicas: 1 })
}

async function start(open: OpenEngine, options: Partial<WebhookOptions> = {}): Promise<Started> {
  const engine = await open()
  const { system } = createBroker(engine)
  let attempts = 0
  const webhooks = await openWebhooks(system, testOptions({ ...options, hooks: { attempted: () => attempts++ } }))
  const stop = async (): Promise<void> => {
    await webhooks.close(0)
    await engine.close()
  }
  onTestFinished(stop)
  return { system, webhooks, attempts: () => attempts, stop }
}

function sendOne({ system }: Started, type: NewSubscription['type']): Promise<unknown> {
  const message = { body: encodeText('one') }
  return type === 'queues' ? system.queues.send('orders', message) : system.eventsStore.publish('orders', message)
}

describe.each([
  { engine: 'embedded', store: embedded },
  ...(NATS_SERVER === undefined ? [] : [{ engine: 'NATS', store: nats }]),
])('on $engine', ({ store }) => {
  test.each([
    { title: 'an ordered events store', type: 'events_store', ordered: true },
    { title: 'an events store without order', type: 'events_store', ordered: false },
    { title: 'a queue', type: 'queues', ordered: false },
  ] as const)('attempts - a dead letter of $title counts the attempts before restarts', async ({ type, ordered }) => {
    const open = await store()
    const receiver = await openReceiver()
    receiver.reply = answer(503)
    const first = await start(open)
    const { subscription } = await first.webhooks.create(toOrders(receiver.url, { type, ordered }))
    await sendOne(first, type)
    await until(() => first.attempts() >= 1)
    await first.stop()
    const second = await start(open)
    await until(() => second.attempts() >= 1)
    await second.stop()
    receiver.reply = answer(422)
    const third = await start(open)
    const [letter] = await third.system.queues.receive(subscription.deadLetterQueue, { waitMs: 20_000 })
    const attempts = first.attempts() + second.attempts() + 1
    expect(attempts).toBeGreaterThanOrEqual(3)
    expect(letter?.message.tags).toMatchObject({ webhook_attempts: String(attempts), webhook_status: '422' })
  })

  test.each([
    { title: 'an events store', type: 'events_store' },
    { title: 'a queue', type: 'queues' },
  ] as const)('attempts - a restart does not make the messages of $title young again', async ({ type }) => {
    const open = await store()
    const receiver = await openReceiver()
    receiver.reply = answer(503)
    const first = await start(open)
    const { subscription } = await first.webhooks.create(toOrders(receiver.url, { type }))
    await sendOne(first, type)
    await until(() => first.attempts() >= 2)
    await first.stop()
    // Two pauses are at least this long. The one after the first failure of a start is shorter, nearly always.
    const second = await start(open, { maxAgeMs: 990 })
    const [letter] = await second.system.queues.receive(subscription.deadLetterQueue, { waitMs: 20_000 })
    const attempts = String(first.attempts() + 1)
    expect(letter?.message.tags).toMatchObject({ webhook_attempts: attempts, webhook_status: '503' })
  })
})

test.each([
  { title: 'an attempt that disabled the subscription counts', again: 'resume', attempts: '2' },
  { title: 'a redelivery counts anew', again: 'redeliver', attempts: '1' },
] as const)('attempts - $title', async ({ again, attempts }) => {
  const receiver = await openReceiver()
  receiver.reply = answer(410)
  const broker = await start(await embedded())
  const { webhooks, system } = broker
  const { subscription } = await webhooks.create(toOrders(receiver.url))
  const { id, deadLetterQueue } = subscription
  await sendOne(broker, 'events_store')
  await until(async () => (await webhooks.get(id)).state === 'disabled')
  receiver.reply = answer(422)
  if (again === 'redeliver') await webhooks.redeliver(id, 1)
  await webhooks.resume(id)
  const [letter] = await system.queues.receive(deadLetterQueue, { waitMs: 20_000 })
  expect(letter?.message.tags).toMatchObject({ webhook_attempts: attempts })
})

test('failed attempts - are counted by message, and go on from the stored counts', () => {
  const attempts = new FailedAttempts([['a', 2, 100]])
  attempts.add([{ name: 'a' }, { name: 'b' }], 500)
  expect([attempts.of({ name: 'a' }), attempts.of({ name: 'b' }), attempts.of({ name: 'c' })]).toEqual([3, 1, 0])
  attempts.forget([{ name: 'a' }])
  expect(attempts.stored).toEqual([['b', 1, 500]])
})

test('failed attempts - the time of the first attempt stays', () => {
  const attempts = new FailedAttempts([['a', 2, 100]])
  attempts.add([{ name: 'a' }, { name: 'b' }], 500)
  attempts.add([{ name: 'b' }], 700)
  expect([attempts.since({ name: 'a' }), attempts.since({ name: 'b' })]).toEqual([100, 500])
  expect(attempts.since({ name: 'c' })).toBeUndefined()
})

test('failed attempts - messages that are never tried again do not fill the memory', () => {
  const attempts = new FailedAttempts()
  attempts.add([{ name: 'again' }], 1)
  const failures = 2 * MAX_IN_FLIGHT
  for (let n = 0; n < failures; n++) attempts.add([{ name: `gone-${n}` }, { name: 'again' }], n)
  expect(attempts.stored).toHaveLength(MAX_IN_FLIGHT)
  expect(attempts.of({ name: 'again' })).toBe(failures + 1)
})
