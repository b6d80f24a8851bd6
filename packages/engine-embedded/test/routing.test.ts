import type { Message } from '@signalbox/broker-core'
import { parseRoutingTable } from '@signalbox/broker-core'
import { expect, onTestFinished, test } from 'vitest'

import { ALICE, BOB, OWN, text } from './broker-fixture.ts'
import { harness } from './contract-harness.ts'
import { openRouted, queued, routedOver, stored, told, toldFailure } from './routing-fixture.ts'

const ORDERS = {
  key: "type = 'com.example.order.created'",
  keyType: 'cesql',
  routes: 'events_store:archive;queues:work',
} as const

test('routing - a message is copied to every target of a rule that matches it', async () => {
  const { alice, copies, failures, accepted } = await openRouted([ORDERS])
  const tags = { ce_type: 'com.example.order.created', ce_id: '7', trace: 'x' }
  const { id } = await alice.events.publish('orders', { ...text('{"n":1}'), metadata: 'meta', tags })
  await alice.events.publish('orders', { ...text('other'), tags: { ce_type: 'com.example.order.paid' } })

  const [archived, ...moreArchived] = await alice.eventsStore.read('archive', { maxMessages: 10 })
  const [work, ...moreWork] = await alice.queues.peek('work', { maxMessages: 10 })
  expect([moreArchived, moreWork]).toEqual([[], []])
  const same = { ...text('{"n":1}'), metadata: 'meta', tags, clientId: 'alice' }
  expect(archived).toMatchObject({ ...same, channel: 'archive', sequence: 1 })
  expect(work).toMatchObject({ ...same, channel: 'work', receiveCount: 0, expiresAt: 0, deadLetterQueue: '' })
  expect(new Set([id, archived?.id, work?.id]).size).toBe(3)
  // The two are written together, and told as each is done.
  const [toStore, toQueue] = [...copies].sort((x, y) => x.to.type.localeCompare(y.to.type))
  expect([toStore, toQueue].map((copy) => copy && told(copy))).toEqual([
    '0: events:orders > events_store:archive (1)',
    '0: events:orders > queues:work (1)',
  ])
  expect([toStore?.message.id, toQueue?.message.id]).toEqual([archived?.id, work?.id])
  expect(failures).toEqual([])
  expect([...accepted].sort()).toEqual([
    'alice events:orders',
    'alice events:orders',
    'alice events_store:archive',
    'alice queues:work',
  ])
})

test('routing - queues, events and events stores are routed from and to', async () => {
  const { alice, copies } = await openRouted([
    { key: 'from\\..*', routes: 'queues:to.queue;events:to.events;events_store:to.store' },
  ])
  const seen: Message[] = []
  await using _ = await alice.events.subscribe('to.events', {}, (event) => seen.push(event))
  await alice.queues.send('from.queue', text('q'))
  await alice.events.publish('from.events', text('e'))
  await alice.eventsStore.publish('from.store', text('s'))
  await alice.queues.sendBatch('from.queue', [text('b1'), text('b2')])
  const all = ['q', 'e', 's', 'b1', 'b2']
  expect(await queued(alice, 'to.queue')).toEqual(all)
  expect(await stored(alice, 'to.store')).toEqual(all)
  expect(seen.map(({ body, clientId }) => `${String.fromCharCode(...body)} ${clientId}`)).toEqual(
    all.map((body) => `${body} alice`),
  )
  expect(copies).toHaveLength(15)
})

test('routing - commands and queries are not routed', async () => {
  const { alice, copies } = await openRouted([{ key: '.*', routes: 'queues:copies' }])
  await using _ = await alice.queries.subscribe('ask', {}, () => ({}))
  await using __ = await alice.commands.subscribe('do', {}, () => ({}))
  await alice.queries.send('ask', text('x'), { timeoutMs: 10_000 })
  await alice.commands.send('do', text('x'), { timeoutMs: 10_000 })
  expect(copies).toEqual([])
})

test('routing - a copy in a queue has no delay, expiry or dead-letter queue of the original', async () => {
  const { alice } = await openRouted([{ key: 'later', routes: 'queues:now' }])
  const wishes = { delayMs: 3_600_000, expirationMs: 7_200_000, maxReceiveCount: 3, deadLetterQueue: 'dead' }
  await alice.queues.send('later', { ...text('x'), ...wishes })
  expect(await queued(alice, 'later')).toEqual([])
  expect(await alice.queues.peek('now')).toMatchObject([{ expiresAt: 0, maxReceiveCount: 0, deadLetterQueue: '' }])
})

test('routing - placeholders take their values from the tags', async () => {
  const { alice, failures } = await openRouted([
    { key: 'in', routes: 'queues:all' },
    { key: 'in', routes: 'queues:by.type.{ce_type};events_store:by.shop.{ce_shop}' },
  ])
  await alice.queues.send('in', { ...text('good'), tags: { ce_type: 'order', ce_shop: '7' } })
  await alice.queues.send('in', { ...text('no shop'), tags: { ce_type: 'order' } })
  await alice.queues.send('in', { ...text('bad shop'), tags: { ce_type: 'order', ce_shop: 'x..y' } })
  expect(await queued(alice, 'by.type.order')).toEqual(['good'])
  expect(await stored(alice, 'by.shop.7')).toEqual(['good'])
  expect(await queued(alice, 'all')).toEqual(['good', 'no shop', 'bad shop'])
  expect(failures.map(toldFailure)).toEqual(['1: queues:in placeholder', '1: queues:in channel'])
  expect(failures.map(({ detail }) => detail)).toEqual([
    'the message has no tag ce_shop',
    'channel "by.shop.x..y": it has an empty part before, between or after dots',
  ])
})

test('routing - a rule whose condition fails is skipped and reported, and the others continue', async () => {
  const { alice, failures } = await openRouted([
    { key: 'priority > 3', keyType: 'cesql', routes: 'queues:urgent' },
    { key: 'in', routes: 'queues:all' },
  ])
  await alice.queues.send('in', { ...text('high'), tags: { ce_priority: '5' } })
  await alice.queues.send('in', { ...text('odd'), tags: { ce_priority: 'very' } })
  expect(await queued(alice, 'urgent')).toEqual(['high'])
  expect(await queued(alice, 'all')).toEqual(['high', 'odd'])
  const odd = failures.filter(({ from }) => from.channel === 'in')
  expect(odd.map(({ reason, detail }) => ({ reason, detail }))).toEqual([
    { reason: 'condition', detail: '"very" is not a 32-bit integer' },
  ])
})

test('routing - a copy that the engine refuses does not fail the send', async () => {
  const { alice, failures, copies, accepted } = await openRouted(
    [{ key: 'in', routes: 'queues:small;events_store:big' }],
    {
      queueMaxMessages: 1,
    },
  )
  expect((await alice.eventsStore.publish('in', text('1'))).sequence).toBe(1)
  expect((await alice.eventsStore.publish('in', text('2'))).sequence).toBe(2)
  expect(await queued(alice, 'small')).toEqual(['1'])
  expect(await stored(alice, 'big')).toEqual(['1', '2'])
  expect(failures.map(toldFailure)).toEqual(['0: events_store:in > queues:small QUEUE_FULL'])
  expect(failures[0]?.reason).toBe('engine')
  expect(copies).toHaveLength(3)
  expect(accepted.filter((line) => line.endsWith('queues:small'))).toHaveLength(1)
})

test('routing - a message that was refused is not routed', async () => {
  const { alice, copies } = await openRouted([{ key: 'in', routes: 'events_store:log' }], { queueMaxMessages: 1 })
  await alice.queues.send('in', text('1'))
  await expect(alice.queues.send('in', text('2'))).rejects.toMatchObject({ code: 'QUEUE_FULL' })
  await expect(alice.queues.sendBatch('in', [text('3'), text('4')])).rejects.toMatchObject({ code: 'QUEUE_FULL' })
  expect(await stored(alice, 'log')).toEqual(['1'])
  expect(copies).toHaveLength(1)
})

test('routing - copies are there when the send resolves, and after a restart', async () => {
  const opened = await harness.open()
  onTestFinished(() => opened.dispose())
  const entries = [{ key: 'in', routes: 'queues:a;events_store:b' }]
  const before = routedOver(opened.engine, entries)
  await before.alice.queues.send('in', text('x'))
  expect([await queued(before.alice, 'a'), await stored(before.alice, 'b')]).toEqual([['x'], ['x']])
  await opened.restart()
  const { alice } = routedOver(opened.engine, entries)
  expect([await queued(alice, 'a'), await stored(alice, 'b')]).toEqual([['x'], ['x']])
})

test('routing - the copies of a batch keep its order', async () => {
  const { alice } = await openRouted([
    { key: 'in', routes: 'queues:middle' },
    { key: 'middle', routes: 'events_store:end' },
  ])
  const bodies = Array.from({ length: 60 }, (_, i) => String(i))
  await alice.queues.sendBatch('in', bodies.map(text))
  expect(await queued(alice, 'middle')).toEqual(bodies)
  expect(await stored(alice, 'end')).toEqual(bodies)
})

test('routing - the table can be replaced while the broker runs', async () => {
  const { alice, routing } = await openRouted([{ key: 'in', routes: 'queues:old' }])
  await alice.queues.send('in', text('1'))
  routing.replace(parseRoutingTable([{ key: 'in', routes: 'queues:new' }]))
  await alice.queues.send('in', text('2'))
  expect([await queued(alice, 'old'), await queued(alice, 'new')]).toEqual([['1'], ['2']])
})

test('C5 - routing: a duplicate is not copied again', async () => {
  const { alice, copies, accepted, failures } = await openRouted([
    { key: 'in', routes: 'queues:a;events_store:b;events:c' },
    { key: 'a', routes: 'queues:d' },
    { key: 'in|d', routes: 'queues:{ce_none}' },
  ])
  const seen: Message[] = []
  await using _ = await alice.events.subscribe('c', {}, (event) => seen.push(event))
  const message = { ...text('x'), tags: { message_id: 'once' } }
  await alice.queues.send('in', message)
  const before = { copies: [...copies], accepted: [...accepted], failures: [...failures] }
  expect(before.failures).toHaveLength(1)
  expect((await alice.queues.send('in', message)).duplicate).toBe(true)
  expect((await alice.queues.sendBatch('in', [message, message])).map(({ duplicate }) => duplicate)).toEqual([
    true,
    true,
  ])
  expect({ copies, accepted, failures }).toEqual(before)
  expect([await queued(alice, 'a'), await stored(alice, 'b'), await queued(alice, 'd')]).toEqual([['x'], ['x'], ['x']])
  expect(seen).toHaveLength(1)
  // The same message_id on another channel is another message.
  await alice.eventsStore.publish('in', message)
  await alice.eventsStore.publish('in', message)
  expect(await queued(alice, 'a')).toEqual(['x', 'x'])
})

test('C5 - routing: a duplicate completes copies that a crash interrupted', async () => {
  const { engine, alice, copies } = await openRouted([
    { key: 'in', routes: 'queues:a;events:e' },
    { key: 'a|e', routes: 'events_store:b.{ce_n}' },
  ])
  // A broker without a table leaves what a crash right after the first write would leave.
  const cut = routedOver(engine, [])
  const message = { ...text('x'), tags: { message_id: 'once', ce_n: '1' } }
  const first = await cut.alice.queues.send('in', message)
  const again = await Promise.all([alice.queues.send('in', message), alice.queues.send('in', message)])
  expect(again.map(({ id, duplicate }) => ({ id, duplicate }))).toEqual([
    { id: first.id, duplicate: true },
    { id: first.id, duplicate: true },
  ])
  expect([await queued(alice, 'a'), await stored(alice, 'b.1')]).toEqual([['x'], ['x']])
  expect(copies.map(({ to }) => to.channel)).toEqual(['a', 'b.1'])
})

test('C5 - routing: no sender can take the place of a copy', async () => {
  const { alice, broker } = await openRouted([{ key: 'in', routes: 'queues:a' }])
  await broker.as(BOB).queues.send('a', { ...text('bob'), tags: { message_id: 'once' } })
  await alice.queues.send('in', { ...text('alice'), tags: { message_id: 'once' } })
  expect(await queued(alice, 'a')).toEqual(['bob', 'alice'])
})

test('M8 - routing: internal channels are never routed from or to', async () => {
  const { system, alice, copies, failures } = await openRouted([
    { key: '.*', routes: 'queues:copies' },
    { key: "EXISTS id AND type != 'x'", keyType: 'cesql', routes: 'queues:copies.too' },
    { key: 'in', routes: 'events_store:{ce_to}' },
  ])
  await system.queues.send(OWN, text('q'))
  await system.queues.sendBatch(OWN, [text('b')])
  await system.events.publish(OWN, text('e'))
  await system.eventsStore.publish(OWN, text('s'))
  expect(copies).toEqual([])
  await alice.queues.send('in', { ...text('x'), tags: { ce_to: OWN } })
  expect(await system.eventsStore.read(OWN, { maxMessages: 10 })).toHaveLength(1)
  expect(failures.map(toldFailure)).toEqual(['2: queues:in channel'])
  // What the broker's own parts send to other channels is routed like anything else.
  await system.queues.send('in', text('system'))
  expect(await queued(alice, 'copies')).toEqual(['x', 'system'])
})

test('routing - a tombstone is not copied', async () => {
  const { alice, copies } = await openRouted([{ key: 'in', routes: 'events_store:log' }])
  await alice.channels.create('events_store', 'in', { compacted: true })
  await alice.eventsStore.publish('in', { ...text('x'), key: 'k' })
  await alice.eventsStore.publish('in', { ...text(''), key: 'k', tombstone: true })
  expect(copies.map(told)).toEqual(['0: events_store:in > events_store:log (1)'])
})

test("routing - a copy carries its sender's name, and no other data about the sender", async () => {
  const { broker, copies, accepted } = await openRouted([{ key: 'in', routes: 'queues:a' }])
  await broker.as(BOB).queues.send('in', text('x'))
  await broker.as(ALICE).queues.send('in', text('y'))
  expect(copies.map(({ message }) => message.clientId)).toEqual(['bob', 'alice'])
  expect(accepted).toEqual(['bob queues:in', 'bob queues:a', 'alice queues:in', 'alice queues:a'])
})

test('routing - a copy moves to a dead-letter queue by the policy of its queue, although it has no limit', async () => {
  const { alice, broker } = await openRouted([{ key: 'orders', routes: 'queues:work' }])
  const retry = {
    max_receive_count: 1,
    dead_letter_queue: 'work.dead',
    min_backoff_seconds: 0,
    max_backoff_seconds: 0,
    backoff_factor: 1,
    jitter: 0,
  }
  broker.settings.replace([{ type: 'queues', match: 'work', source: 'api', retry }])
  await alice.events.publish('orders', text('x'))
  const [copy] = await alice.queues.receive('work')
  expect(await alice.queues.nack([copy?.receipt ?? ''])).toEqual({ settled: 1, lost: [] })
  const [dead] = await alice.queues.receive('work.dead')
  expect(dead?.message.tags).toMatchObject({ dlq_source: 'work', dlq_reason: 'max_receive_count' })
})
