import { ACTIVE_MS, ANONYMOUS, createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import { ALICE, BOB, failure, openBroker, text } from './broker-fixture.ts'

test('broker - a message carries its sender’s verified identity, and only its receiver settles it', async () => {
  const { broker } = await openBroker()
  const [alice, bob] = [broker.as(ALICE), broker.as(BOB)]
  await alice.queues.send('c', text('x'))
  const [delivery] = await bob.queues.receive('c')
  expect(delivery?.message).toMatchObject({ clientId: 'alice', metadata: '' })
  const receipt = delivery?.receipt ?? ''
  expect(await alice.queues.ack([receipt])).toEqual({ settled: 0, lost: [receipt] })
  expect(await bob.queues.extend([receipt], 60_000)).toEqual({ settled: 1, lost: [] })
  expect(await bob.queues.nack([receipt])).toEqual({ settled: 1, lost: [] })
  const [again] = await alice.queues.receive('c')
  expect(again?.message.receiveCount).toBe(2)
  expect(await alice.queues.ack([again?.receipt ?? ''])).toEqual({ settled: 1, lost: [] })
  expect(broker.as(ANONYMOUS).caller.clientId).toBe('anonymous')
})

test('broker - an aborted signal stops a call before it reaches the engine', async () => {
  const { broker } = await openBroker()
  const { queues, events, eventsStore, queries } = broker.as(ALICE)
  const reason = new Error('gone')
  const signal = AbortSignal.abort(reason)
  for (const call of [
    () => queues.receive('c', { signal }),
    () => events.subscribe('c', { signal }, () => {}),
    () => eventsStore.subscribe('c', { from: 'new' }, { signal }, () => {}),
    () => queries.send('c', text('x'), { timeoutMs: 50, signal }),
    () => queries.subscribe('c', { signal }, () => ({})),
  ]) {
    await expect(call()).rejects.toBe(reason)
  }
})

test('C5 - broker: the tag message_id makes sends to queues and events stores idempotent', async () => {
  const { broker } = await openBroker()
  const { queues, eventsStore } = broker.as(ALICE)
  const message = { ...text('x'), tags: { message_id: 'order-7' } }
  const first = await queues.send('c', message)
  expect(await queues.send('c', message)).toEqual({ ...first, duplicate: true })
  expect((await queues.sendBatch('c', [message, text('y')])).map(({ duplicate }) => duplicate)).toEqual([true, false])
  expect((await eventsStore.publish('c', message)).duplicate).toBe(false)
  expect((await eventsStore.publish('c', message)).duplicate).toBe(true)
  expect(await queues.peek('c', { maxMessages: 10 })).toHaveLength(2)
  const empty = { ...text('x'), tags: { message_id: '' } }
  expect([(await queues.send('c', empty)).duplicate, (await queues.send('c', empty)).duplicate]).toEqual([false, false])
})

test('broker - an empty batch sends nothing', async () => {
  const { broker, engine } = await openBroker()
  expect(await broker.as(ALICE).queues.sendBatch('c', [])).toEqual([])
  expect(await engine.channels.list()).toEqual([])
})

test('broker - a subscriber’s answer is completed, and its error text rejects', async () => {
  const { broker } = await openBroker()
  const { commands } = broker.as(ALICE)
  await commands.subscribe('fine', {}, () => ({}))
  await commands.subscribe('refused', {}, async () => ({ error: 'not today', metadata: 'm', tags: { a: 'b' } }))
  const fine = await commands.send('fine', text('x'), { timeoutMs: 10_000 })
  expect(fine).toMatchObject({ executed: true, error: '', metadata: '', tags: {} })
  expect(fine.body.byteLength).toBe(0)
  const refused = await commands.send('refused', text('x'), { timeoutMs: 10_000 })
  expect(refused).toMatchObject({ executed: false, error: 'not today', metadata: 'm', tags: { a: 'b' } })
})

test('broker - a channel that does not exist is CHANNEL_NOT_FOUND', async () => {
  const { broker } = await openBroker()
  const error = await failure(broker.as(ALICE).channels.info('events', 'nowhere'))
  expect(error.code).toBe('CHANNEL_NOT_FOUND')
  expect(error.message).toContain('"nowhere"')
  expect(error.details).toEqual({ channel: 'nowhere', type: 'events' })
})

test('M9 - broker: a list pattern with * or ? is a glob, otherwise a prefix', async () => {
  const { broker } = await openBroker()
  const { channels } = broker.as(ALICE)
  for (const name of ['a', 'ab', 'a.b', 'a.c', 'b.a']) await channels.create('queues', name)
  const names = async (pattern: string) => (await channels.list({ pattern })).map(({ name }) => name)
  expect(await names('a')).toEqual(['a', 'a.b', 'a.c', 'ab'])
  expect(await names('a.?')).toEqual(['a.b', 'a.c'])
  expect(await names('*a')).toEqual(['a', 'b.a'])
  expect(await names('.')).toEqual([])
})

test('C3 - broker: a channel is active with traffic or a subscriber within the last five minutes', async () => {
  const { broker } = await openBroker()
  const { channels, queues, commands } = broker.as(ALICE)
  expect(ACTIVE_MS).toBe(300_000)
  await queues.send('busy', text('x'))
  expect(await channels.info('queues', 'busy')).toMatchObject({ isActive: true, incoming: 1, outgoing: 0 })
  await using subscription = await commands.subscribe('served', {}, () => ({}))
  await commands.send('served', text('x'), { timeoutMs: 10_000 })
  expect(await channels.info('commands', 'served')).toMatchObject({ isActive: true, subscribers: 1 })
  expect(subscription).toBeDefined()
  expect((await channels.list()).map(({ name, isActive }) => [name, isActive])).toContainEqual(['busy', true])
})

test.each([
  [6 * 60_000, false],
  [4 * 60_000, true],
])('C3 - broker: a channel whose last traffic was %i ms ago is active: %s', async (ago, active) => {
  const engine = await openEmbeddedEngine({ path: testFolder(), now: () => Date.now() - ago })
  onTestFinished(() => engine.close())
  const { channels, queues } = createBroker(engine).broker.as(ALICE)
  await queues.send('c', text('x'))
  expect((await channels.info('queues', 'c')).isActive).toBe(active)
  expect((await channels.list()).map(({ isActive }) => isActive)).toEqual([active])
})

test('broker - health, statistics and limits are the engine’s', async () => {
  const { broker } = await openBroker({ maxMessageBytes: 12_345 })
  expect((await broker.health()).ok).toBe(true)
  await broker.as(ALICE).queues.send('c', text('x'))
  expect((await broker.stats()).queues.waiting).toBe(1)
  expect(broker.engine.name).toBe('embedded')
  expect(broker.engine.limits.maxMessageBytes).toBe(12_345)
})
