import { encodeText } from '@signalbox/broker-core'
import type { SourceSubscription, WebhookMessageSource } from '@signalbox/broker-core/ports'
import { until } from '@signalbox/testkit/until'
import { answer, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { expect, test } from 'vitest'

import { openBench } from './webhook-bench.ts'

const RUN = { owner: 'alice', type: 'run', channel: 'agent/task', format: 'test.run' } as const

/** A source of texts, which ends after the last one. */
function sourceOf(texts: readonly string[], more: Partial<WebhookMessageSource> = {}): WebhookMessageSource {
  return {
    type: 'run',
    format: {
      name: 'test.run',
      maxBatch: 1,
      goneEnds: 'removal',
      encode: (_type, [message], { secretNotes }) => ({
        headers: { 'x-secret': secretNotes },
        body: message?.body ?? new Uint8Array(),
        unsigned: true,
      }),
      verify: async () => ({}),
    },
    maxPerOwner: 1_000,
    maxPerChannel: 10,
    permits: () => true,
    async *open({ channel, position = '0' }: SourceSubscription) {
      for (const [at, text] of texts.entries()) {
        if (at < Number(position)) continue
        const content = { body: encodeText(text), metadata: '', tags: {} }
        const message = { id: `m${at}`, clientId: 'alice', channel, timestamp: Date.now(), ...content }
        yield { message, name: String(at), position: String(at + 1) }
      }
    },
    ...more,
  }
}

test('connector sources - messages arrive in order after a position, and then the subscription is removed', async () => {
  const { webhooks } = await openBench()
  const receiver = await openReceiver()
  receiver.reply = (response, received) => answer(receiver.received.length === 1 ? 503 : 204)(response, received)
  webhooks.registerSource(sourceOf(['a', 'b', 'c']))
  const secretNotes = 'token'
  const { subscription } = await webhooks.create({ ...RUN, endpoint: receiver.url, position: '1', secretNotes })
  expect(subscription).toMatchObject({ ordered: true, type: 'run' })
  await until(() => webhooks.list().length === 0)
  expect(receiver.bodies).toEqual(['b', 'b', 'c'])
  const [first] = receiver.received
  expect(first?.headers).toMatchObject({ 'x-secret': 'token', 'webhook-id': `msg_${subscription.id}_1` })
  expect(first?.headers['webhook-signature']).toBeUndefined()
})

test('connector sources - secret notes are stored sealed', async () => {
  const { webhooks, system } = await openBench()
  const receiver = await openReceiver()
  receiver.reply = answer(503)
  webhooks.registerSource(sourceOf(['a']))
  await webhooks.create({ ...RUN, endpoint: receiver.url, secretNotes: 'the-token' })
  const entries = await system.eventsStore.readLatest('_AGENTS_.webhooks', { maxMessages: 100 })
  const text = entries.map(({ body }) => Buffer.from(body).toString()).join('\n')
  expect(text).toContain('sealedNotes')
  expect(text).not.toContain('the-token')
})

test('connector sources - a subscription waits while no connector has its source, and continues where it was', async () => {
  const { webhooks } = await openBench()
  const receiver = await openReceiver()
  const unregister = webhooks.registerSource(sourceOf(['a', 'b', 'c']))
  receiver.reply = (response, received) => {
    if (receiver.received.length === 2) unregister()
    answer(receiver.received.length === 2 ? 503 : 204)(response, received)
  }
  await webhooks.create({ ...RUN, endpoint: receiver.url })
  await until(() => receiver.received.length === 2)
  webhooks.registerSource(sourceOf(['a', 'b', 'c']))
  await until(() => webhooks.list().length === 0)
  expect(receiver.bodies).toEqual(['a', 'b', 'b', 'c'])
})

test('connector sources - an event that its endpoint answers while its source is removed is not sent again', async () => {
  const { webhooks } = await openBench()
  const receiver = await openReceiver()
  const unregister = webhooks.registerSource(sourceOf(['a', 'b', 'c']))
  receiver.reply = (response, received) => {
    if (receiver.received.length === 2) unregister()
    answer(204)(response, received)
  }
  await webhooks.create({ ...RUN, endpoint: receiver.url })
  await until(() => receiver.received.length === 2)
  webhooks.registerSource(sourceOf(['a', 'b', 'c']))
  await until(() => webhooks.list().length === 0)
  expect(receiver.bodies).toEqual(['a', 'b', 'c'])
})

test('connector sources - a close waits no longer than its grace for an endpoint whose source was removed', async () => {
  const { webhooks } = await openBench()
  const receiver = await openReceiver()
  receiver.reply = () => {}
  const unregister = webhooks.registerSource(sourceOf(['a']))
  await webhooks.create({ ...RUN, endpoint: receiver.url })
  await until(() => receiver.received.length === 1)
  unregister()
  const begin = performance.now()
  await webhooks.close(100)
  // The removal alone gives it 5 s.
  expect(performance.now() - begin).toBeLessThan(4_000)
})

test('connector sources - a source that fails is opened again after the last message', async () => {
  const { webhooks } = await openBench()
  const receiver = await openReceiver()
  const source = sourceOf(['a', 'b'])
  let opened = 0
  webhooks.registerSource({
    ...source,
    async *open(subscription, options) {
      const isFirst = opened++ === 0
      for await (const message of source.open(subscription, options)) {
        yield message
        if (isFirst) throw new Error('the store is not available')
      }
    },
  })
  await webhooks.create({ ...RUN, endpoint: receiver.url })
  await until(() => webhooks.list().length === 0)
  expect(receiver.bodies).toEqual(['a', 'b'])
})

test('connector sources - limits for each owner and channel, apart from those of channels', async () => {
  const { webhooks } = await openBench({ maxPerOwner: 1 })
  const receiver = await openReceiver()
  receiver.reply = answer(503)
  webhooks.registerSource(sourceOf(['a'], { maxPerOwner: 3, maxPerChannel: 2 }))
  const create = (channel: string, owner = 'alice') =>
    webhooks.create({ ...RUN, owner, channel, endpoint: receiver.url })
  await create('agent/1')
  await create('agent/1')
  await expect(create('agent/1')).rejects.toMatchObject({ code: 'SUBSCRIPTION_LIMIT', details: { limit: 2 } })
  await create('agent/2')
  await expect(create('agent/3')).rejects.toMatchObject({ code: 'SUBSCRIPTION_LIMIT', details: { limit: 3 } })
  await expect(webhooks.check({ ...RUN, channel: 'agent/3', endpoint: receiver.url })).rejects.toMatchObject({
    code: 'SUBSCRIPTION_LIMIT',
  })
  await create('agent/3', 'bob')
})

test('connector sources - an owner who may not have the messages any more gets none', async () => {
  const { webhooks } = await openBench()
  const receiver = await openReceiver()
  webhooks.registerSource(sourceOf(['a'], { permits: (owner) => owner === 'bob' }))
  await webhooks.create({ ...RUN, endpoint: receiver.url })
  await until(() => webhooks.list('alice')[0]?.state === 'disabled')
  await webhooks.create({ ...RUN, owner: 'bob', endpoint: receiver.url })
  await until(() => receiver.received.length === 1)
  expect(receiver.bodies).toEqual(['a'])
})

test('connector sources - a refused message that is too large for a queue leaves its reason in the dead-letter queue', async () => {
  const { webhooks, system } = await openBench({}, { maxMessageBytes: 4_096 })
  const receiver = await openReceiver()
  receiver.reply = (response, received) => answer(receiver.received.length === 1 ? 400 : 204)(response, received)
  webhooks.registerSource(sourceOf(['x'.repeat(8_192), 'b']))
  const { subscription } = await webhooks.create({ ...RUN, endpoint: receiver.url })
  const [letter] = await system.queues.receive(subscription.deadLetterQueue, { waitMs: 20_000 })
  expect(letter?.message.tags).toMatchObject({ webhook_status: '400', webhook_source: 'agent/task' })
  expect(letter?.message.body.byteLength).toBe(0)
  await until(() => webhooks.list().length === 0)
  expect(receiver.bodies.at(-1)).toBe('b')
})
