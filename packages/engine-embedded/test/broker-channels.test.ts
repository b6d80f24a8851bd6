import type { BrokerHandle } from '@signalbox/broker-core'
import { decodeText } from '@signalbox/broker-core'
import { expect, test } from 'vitest'

import { ALICE, BOB, failure, openBroker, OWN, sharedBroker, text } from './broker-fixture.ts'

/** For calls that are refused. */
const refusing = sharedBroker()

type Call = (handle: BrokerHandle, channel: string) => Promise<unknown>

/** Every method that takes a channel. */
const CALLS: Readonly<Record<string, Call>> = {
  'queues.send': (handle, channel) => handle.queues.send(channel, text('x')),
  'queues.send, as dead-letter queue': (handle, deadLetterQueue) =>
    handle.queues.send('user', { ...text('x'), maxReceiveCount: 1, deadLetterQueue }),
  'queues.sendBatch': (handle, channel) => handle.queues.sendBatch(channel, [text('x')]),
  'queues.sendBatch, as dead-letter queue': (handle, deadLetterQueue) =>
    handle.queues.sendBatch('user', [text('x'), { ...text('y'), deadLetterQueue }]),
  'queues.receive': (handle, channel) => handle.queues.receive(channel),
  'queues.peek': (handle, channel) => handle.queues.peek(channel),
  'queues.purge': (handle, channel) => handle.queues.purge(channel),
  'events.publish': (handle, channel) => handle.events.publish(channel, text('x')),
  'events.subscribe': (handle, channel) => handle.events.subscribe(channel, {}, () => {}),
  'eventsStore.publish': (handle, channel) => handle.eventsStore.publish(channel, text('x')),
  'eventsStore.read': (handle, channel) => handle.eventsStore.read(channel, { maxMessages: 1 }),
  'eventsStore.readLatest': (handle, channel) => handle.eventsStore.readLatest(channel, { maxMessages: 1 }),
  'eventsStore.getLast': (handle, channel) => handle.eventsStore.getLast(channel, 'key'),
  'eventsStore.subscribe': (handle, channel) => handle.eventsStore.subscribe(channel, { from: 'new' }, {}, () => {}),
  'commands.send': (handle, channel) => handle.commands.send(channel, text('x'), { timeoutMs: 50 }),
  'commands.subscribe': (handle, channel) => handle.commands.subscribe(channel, {}, () => ({})),
  'queries.send': (handle, channel) => handle.queries.send(channel, text('x'), { timeoutMs: 50 }),
  'queries.subscribe': (handle, channel) => handle.queries.subscribe(channel, {}, () => ({})),
  'channels.info': (handle, channel) => handle.channels.info('queues', channel),
  'channels.create': (handle, channel) => handle.channels.create('queues', channel),
  'channels.delete': (handle, channel) => handle.channels.delete('events_store', channel),
}

test.each(Object.entries(CALLS))('M8 - broker: %s refuses a reserved channel and changes nothing', async (_, call) => {
  const { broker, system, engine } = await refusing()
  await system.queues.send(OWN, text('internal'))
  await system.eventsStore.publish(OWN, text('internal'))
  const before = await engine.channels.list()
  const error = await failure(call(broker.as(ALICE), OWN))
  expect(error.code).toBe('CHANNEL_RESERVED')
  expect(error.message).toContain('_AGENTS_.')
  expect(error.details).toMatchObject({ channel: OWN })
  expect(await engine.channels.list()).toEqual(before)
})

test.each(['_AGENTS_.>', '_AGENTS_.*', '_AGENTS_.agents/*'])(
  'M8 - broker: the pattern %s is refused to users and given to the broker itself',
  async (pattern) => {
    const { broker, system } = await openBroker()
    expect((await failure(broker.as(ALICE).events.subscribe(pattern, {}, () => {}))).code).toBe('CHANNEL_RESERVED')
    await using subscription = await system.events.subscribe(pattern, {}, () => {})
    expect(subscription).toBeDefined()
  },
)

test('M8 - broker: an event that is not heard leaves no reserved channel, and one that is heard arrives', async () => {
  const { broker, system, engine } = await openBroker()
  await system.events.publish(OWN, text('unheard'))
  expect(await engine.channels.list()).toEqual([])
  const got: string[] = []
  const hear = (pattern: string) => system.events.subscribe(pattern, {}, ({ body }) => got.push(decodeText(body) ?? ''))
  const subscription = await hear(OWN)
  await system.events.publish(OWN, text('by name'))
  await subscription.close()
  await system.events.publish(OWN, text('unheard'))
  await using _ = await hear('_AGENTS_.>')
  await system.events.publish(`${OWN}.other`, text('by pattern'))
  expect(got).toEqual(['by name', 'by pattern'])
  await broker.as(ALICE).events.publish('user', text('unheard'))
  expect(await broker.as(ALICE).channels.list({ type: 'events' })).toHaveLength(1)
})

test('M8 - broker: only names that begin with _AGENTS_. are reserved', async () => {
  const { broker } = await openBroker()
  const alice = broker.as(ALICE)
  for (const channel of ['_AGENTS_', '_AGENTS_x.y', 'x._AGENTS_.y', '_agents_.x']) {
    await alice.queues.send(channel, text('x'))
    expect(await alice.queues.receive(channel)).toHaveLength(1)
  }
})

test('M8 - broker: the system handle reaches the broker’s own channels', async () => {
  const { system } = await openBroker()
  await system.queues.send(OWN, text('q'))
  expect(await system.queues.receive(OWN)).toHaveLength(1)
  await system.eventsStore.publish(OWN, text('e'))
  expect(await system.eventsStore.read(OWN, { maxMessages: 1 })).toHaveLength(1)
  await system.queries.subscribe(OWN, {}, () => text('answer'))
  expect((await system.queries.send(OWN, text('x'), { timeoutMs: 10_000 })).executed).toBe(true)
  expect(await system.channels.info('queues', OWN)).toMatchObject({ name: OWN })
  expect(system.caller.clientId).toBe('signalbox')
})

async function queueNames(handle: BrokerHandle, filter: { pattern?: string } = {}): Promise<string[]> {
  return (await handle.channels.list({ type: 'queues', ...filter })).map(({ name }) => name)
}

test('M8 - broker: lists show users no internal channel, and the system handle all', async () => {
  const { broker, system } = await openBroker()
  await system.queues.send(OWN, text('x'))
  await system.queues.send('user', text('x'))
  expect(await queueNames(broker.as(ALICE))).toEqual(['user'])
  expect(await queueNames(broker.as(ALICE), { pattern: '_AGENTS_' })).toEqual([])
  expect(await queueNames(broker.as(ALICE), { pattern: '*' })).toEqual(['user'])
  expect(await queueNames(system)).toEqual([OWN, 'user'])
  expect(await queueNames(system, { pattern: '_AGENTS_.' })).toEqual([OWN])
})

test('M8 - broker: a user’s wildcard subscription sees no internal event', async () => {
  const { broker, system } = await openBroker()
  const seen: string[] = []
  const arrived = Promise.withResolvers<void>()
  await broker.as(ALICE).events.subscribe('>', {}, (event) => {
    seen.push(event.channel)
    if (event.channel === 'user.last') arrived.resolve()
  })
  await system.events.publish('_AGENTS_.stream/1', text('x'))
  await broker.as(BOB).events.publish('user.last', text('x'))
  await arrived.promise
  expect(seen).toEqual(['user.last'])
})

const BAD_NAMES = [
  '',
  ' x',
  'x ',
  'a..b',
  '.a',
  'a.',
  'a.*',
  '>',
  'a\nb',
  'x'.repeat(256),
  'x'.repeat(10_000),
  '\ud800',
]

test.each(Object.entries(CALLS))(
  'C1 - broker: %s refuses an invalid channel name, says why and changes nothing',
  async (what, call) => {
    const { broker, engine } = await refusing()
    const before = await engine.channels.list()
    const patterns = what === 'events.subscribe' ? ['a.*', '>'] : []
    // An empty dead-letter queue is none.
    const allowed = what.endsWith('dead-letter queue') ? [''] : patterns
    for (const name of BAD_NAMES.filter((one) => !allowed.includes(one))) {
      const error = await failure(call(broker.as(ALICE), name))
      expect([name, error.code]).toEqual([name, 'CHANNEL_INVALID'])
      expect(error.message).toMatch(/invalid channel (name|pattern) .+: it/)
      expect(error.message.length).toBeLessThan(300)
      expect(error.details['reason']).toBeTypeOf('string')
    }
    expect(await engine.channels.list()).toEqual(before)
  },
)

test.each(['*.a', 'a.>', '>'])('broker - events may be subscribed to by the pattern %s', async (pattern) => {
  const { broker } = await openBroker()
  await using subscription = await broker.as(ALICE).events.subscribe(pattern, {}, () => {})
  expect(subscription).toBeDefined()
})
