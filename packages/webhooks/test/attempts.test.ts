import type { BrokerHandle } from '@signalbox/broker-core'
import { createBroker, encodeText } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { answer, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { expect, onTestFinished, test } from 'vitest'

import type { NewSubscription, Webhooks } from '../src/index.ts'
import { openWebhooks } from '../src/index.ts'
import { testOptions, toOrders } from './webhook-bench.ts'

interface Started {
  readonly system: BrokerHandle
  readonly webhooks: Webhooks
  /** The attempts of this broker that have a result. */
  readonly attempts: () => number
  readonly stop: () => Promise<void>
}

/** Starts a broker over a store, which another one may have written. */
async function start(path: string): Promise<Started> {
  const engine = await openEmbeddedEngine({ path })
  const { system } = createBroker(engine)
  let attempts = 0
  const webhooks = await openWebhooks(system, testOptions({ hooks: { attempted: () => attempts++ } }))
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

test.each([
  { title: 'an ordered events store', type: 'events_store', ordered: true },
  { title: 'an events store without order', type: 'events_store', ordered: false },
  { title: 'a queue', type: 'queues', ordered: false },
] as const)('attempts - a dead letter of $title counts the attempts before restarts', async ({ type, ordered }) => {
  const path = testFolder()
  const receiver = await openReceiver()
  receiver.reply = answer(503)
  const first = await start(path)
  const { subscription } = await first.webhooks.create(toOrders(receiver.url, { type, ordered }))
  await sendOne(first, type)
  await until(() => first.attempts() === 1)
  await first.stop()
  const second = await start(path)
  await until(() => second.attempts() === 1)
  await second.stop()
  receiver.reply = answer(422)
  const third = await start(path)
  const [letter] = await third.system.queues.receive(subscription.deadLetterQueue, { waitMs: 20_000 })
  expect(letter?.message.tags).toMatchObject({ webhook_attempts: '3', webhook_status: '422' })
  expect(receiver.received).toHaveLength(3)
})

test.each([
  { title: 'an attempt that disabled the subscription counts', again: 'resume', attempts: '2' },
  { title: 'a redelivery counts anew', again: 'redeliver', attempts: '1' },
] as const)('attempts - $title', async ({ again, attempts }) => {
  const receiver = await openReceiver()
  receiver.reply = answer(410)
  const broker = await start(testFolder())
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
