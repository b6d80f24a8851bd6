import type { Action, BrokerObserver, ChannelType } from '@signalbox/broker-core'
import { createBroker } from '@signalbox/broker-core'
import { KeyedLog } from '@signalbox/broker-core/internal'
import { expect, test } from 'vitest'

import { ALICE, BOB, failure, openBroker, text } from './broker-fixture.ts'

interface Seen {
  readonly accepted: string[]
  readonly delivered: string[]
  readonly managed: string[]
  readonly failed: string[]
}

function fail(): never {
  throw new Error('of the observer')
}

function recorder(): { readonly seen: Seen; readonly observer: BrokerObserver } {
  const seen: Seen = { accepted: [], delivered: [], managed: [], failed: [] }
  const observer: BrokerObserver = {
    accepted: (type, channel, caller, message) => {
      seen.accepted.push(`${type} ${channel} ${caller.clientId} ${message.body.byteLength}`)
    },
    delivered: (type, channel, caller, message) => {
      seen.delivered.push(`${type} ${channel} ${caller.clientId} ${message.body.byteLength}`)
    },
    managed: (action, type, channel, caller) => {
      seen.managed.push(`${action} ${type} ${channel} ${caller.clientId}`)
    },
    failed: (action: Action, type: ChannelType | undefined, channel, caller, code) => {
      seen.failed.push(`${action} ${type} ${channel} ${caller.clientId} ${code}`)
    },
  }
  return { seen, observer }
}

test('observers - an accepted message is seen once, a duplicate never', async () => {
  const { broker } = await openBroker()
  const { seen, observer } = recorder()
  broker.observe(observer)
  const { queues, events, eventsStore, queries } = broker.as(ALICE)
  const once = { ...text('1'), tags: { message_id: 'a' } }
  await queues.send('c', once)
  await queues.send('c', once)
  await queues.sendBatch('c', [once, text('22')])
  await events.publish('c', text('333'))
  await eventsStore.publish('c', { ...text('4444'), tags: { message_id: 'a' } })
  await eventsStore.publish('c', { ...text('4444'), tags: { message_id: 'a' } })
  await failure(queries.send('c', text('55555'), { timeoutMs: 20 }))
  expect(seen.accepted).toEqual([
    'queues c alice 1',
    'queues c alice 2',
    'events c alice 3',
    'events_store c alice 4',
    'queries c alice 5',
  ])
})

test('observers - a delivered message is seen with its receiver', async () => {
  const { broker } = await openBroker()
  const { seen, observer } = recorder()
  broker.observe(observer)
  const [alice, bob] = [broker.as(ALICE), broker.as(BOB)]
  const arrived = Promise.withResolvers<void>()
  const followed = Promise.withResolvers<void>()
  await bob.events.subscribe('t.*', {}, () => arrived.resolve())
  await alice.events.publish('t.x', text('1'))
  await arrived.promise
  await alice.queues.send('q', text('22'))
  await alice.queues.peek('q')
  await bob.queues.receive('q')
  await alice.eventsStore.publish('l', text('333'))
  await bob.eventsStore.read('l', { maxMessages: 1 })
  await bob.eventsStore.readLatest('l', { maxMessages: 1 })
  await bob.eventsStore.subscribe('l', { from: 'first' }, {}, () => followed.resolve())
  await followed.promise
  await bob.commands.subscribe('c', {}, () => ({}))
  await alice.commands.send('c', text('4444'), { timeoutMs: 10_000 })
  expect(seen.delivered).toEqual([
    'events t.x bob 1',
    'queues q bob 2',
    'events_store l bob 3',
    'events_store l bob 3',
    'events_store l bob 3',
    'commands c bob 4',
  ])
})

test('observers - created, purged and deleted channels are seen, and calls without effect are not', async () => {
  const { broker } = await openBroker()
  const { seen, observer } = recorder()
  broker.observe(observer)
  const { channels, queues } = broker.as(ALICE)
  await channels.create('queues', 'c')
  await channels.create('queues', 'c')
  await queues.purge('c')
  await channels.delete('queues', 'c')
  await channels.delete('queues', 'c')
  expect(seen.managed).toEqual(['create queues c alice', 'purge queues c alice', 'delete queues c alice'])
})

test('observers - a conflict in a log of the broker itself is no failure', async () => {
  const { broker, system } = await openBroker()
  const { seen, observer } = recorder()
  broker.observe(observer)
  const log = new KeyedLog(system, '_AGENTS_.log')
  await log.write('a', text('1'), 0)
  expect(await failure(log.write('a', text('2'), 0))).toMatchObject({ code: 'CONFLICT' })
  expect(seen.failed).toEqual([])
})

test('observers - a failed call is seen with its code', async () => {
  const { broker } = await openBroker({ maxMessageBytes: 10, maxChannels: 1, queueMaxMessages: 1 })
  const { seen, observer } = recorder()
  broker.observe(observer)
  const { queues, events, channels, eventsStore } = broker.as(ALICE)
  await queues.send('c', text('x'))
  await failure(queues.send('c', text('x')))
  await failure(queues.send('c', text('x'.repeat(11))))
  await failure(queues.send('_AGENTS_.x', text('x')))
  await failure(events.publish('more', text('x')))
  await failure(events.subscribe('a..b', {}, () => {}))
  await failure(channels.info('queues', 'nowhere'))
  await failure(eventsStore.read('c', { maxMessages: 0 }))
  await failure(queues.extend(['receipt'], 0))
  expect(seen.failed).toEqual([
    'send queues c alice QUEUE_FULL',
    'send queues c alice MESSAGE_TOO_LARGE',
    'send queues _AGENTS_.x alice CHANNEL_RESERVED',
    'send events more alice CHANNEL_LIMIT',
    'subscribe events a..b alice CHANNEL_INVALID',
    'list queues nowhere alice CHANNEL_NOT_FOUND',
    'read events_store c alice ARGUMENT_INVALID',
    'settle queues  alice ARGUMENT_INVALID',
  ])
  expect(seen.accepted).toEqual(['queues c alice 1'])
})

test('observers - an observer that throws affects no call, and a removed observer sees nothing', async () => {
  const { engine } = await openBroker()
  const { seen, observer } = recorder()
  const { broker } = createBroker(engine, {
    observers: [{ accepted: fail, delivered: fail, managed: fail, failed: fail }, observer],
  })
  const removed = recorder()
  broker.observe(removed.observer)()
  const alice = broker.as(ALICE)
  await alice.queues.send('c', text('x'))
  expect(await alice.queues.receive('c')).toHaveLength(1)
  await alice.queues.purge('c')
  expect((await failure(alice.queues.send('a..b', text('x')))).code).toBe('CHANNEL_INVALID')
  expect([seen.accepted, seen.delivered, seen.managed, seen.failed].map((list) => list.length)).toEqual([1, 1, 1, 1])
  expect(removed.seen).toEqual({ accepted: [], delivered: [], managed: [], failed: [] })
})
