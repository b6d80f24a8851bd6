import assert from 'node:assert/strict'

import type { Engine } from '../engine/engine.ts'
import type { StoredEvent } from '../message.ts'
import type { RetentionSettings, RetrySettings, SettingsEntry } from '../settings/channel-settings.ts'
import type { ContractCase } from './contract-case.ts'
import { eventually, Inbox, isolatedCase, rejectsWith } from './contract-case.ts'
import { follow } from './events-store-subscriptions.ts'
import {
  appendAll,
  assertNothingDue,
  CONSUMER,
  numbered,
  queued,
  receiveMany,
  receiveOne,
  sendAll,
  storedEvent,
  text,
  texts,
} from './messages.ts'

const HOUR_SECONDS = 3_600
/** An age that every stored message has soon. */
const MOMENT_SECONDS = 0.001

function retention(given: Partial<RetentionSettings>): RetentionSettings {
  return { max_age_seconds: 0, max_messages: 0, max_bytes: 0, on_expiry: 'drop', compact: false, ...given }
}

function deadLetters(queue: string): RetrySettings {
  const backoff = { min_backoff_seconds: 0, max_backoff_seconds: 0, backoff_factor: 1, jitter: 0 }
  return { max_receive_count: 0, dead_letter_queue: queue, ...backoff }
}

type Members = Pick<SettingsEntry, 'retention' | 'retry'>

function ofQueue(match: string, members: Members): SettingsEntry {
  return { type: 'queues', match, source: 'api', ...members }
}

function ofStore(match: string, given: Partial<RetentionSettings>): SettingsEntry {
  return { type: 'events_store', match, source: 'api', retention: retention(given) }
}

async function waiting(engine: Engine, queue: string): Promise<string[]> {
  return texts(await engine.queues.peek(queue, { maxMessages: 100 }))
}

async function ended(engine: Engine, queue: string): Promise<{ expired?: number; deadLettered?: number }> {
  const state = (await engine.channels.info('queues', queue))?.queue
  return { expired: state?.expired ?? 0, deadLettered: state?.deadLettered ?? 0 }
}

async function bodies(engine: Engine, store: string): Promise<string[]> {
  return texts(await engine.eventsStore.read(store, { maxMessages: 1_000 }))
}

/** Cases for the setting `retention` of queues and events stores. */
export const retentionCases: readonly ContractCase[] = [
  isolatedCase(
    'retention - waiting messages expire by the age of their queue, unless they have an expiration',
    async ({ engine, channel }) => {
      const [queue, other] = [channel('aged'), channel('other')]
      await sendAll(engine, queue, ['old', 'older'])
      await engine.queues.send(queue, queued('own', { expirationMs: HOUR_SECONDS * 1_000 }))
      await sendAll(engine, other, ['kept'])
      engine.settings.replace([ofQueue('aged-*', { retention: retention({ max_age_seconds: HOUR_SECONDS }) })])
      assert.deepEqual(await waiting(engine, queue), ['old', 'older', 'own'])
      engine.settings.replace([ofQueue('aged-*', { retention: retention({ max_age_seconds: MOMENT_SECONDS }) })])
      await eventually(async () => assert.deepEqual(await waiting(engine, queue), ['own']))
      await eventually(async () => assert.deepEqual(await ended(engine, queue), { expired: 2, deadLettered: 0 }))
      assert.equal(text((await receiveOne(engine, queue)).message), 'own')
      await assertNothingDue(engine, queue)
      assert.deepEqual(await waiting(engine, other), ['kept'])
    },
  ),

  isolatedCase(
    'retention - a queue with an age removes new messages without a receiver, also after a restart',
    async (context) => {
      const queue = context.channel('aged')
      const settings = [ofQueue(queue, { retention: retention({ max_age_seconds: 0.3 }) })]
      await sendAll(context.engine, queue, ['before'])
      await context.restart()
      context.engine.settings.replace(settings)
      await sendAll(context.engine, queue, ['after'])
      await eventually(async () =>
        assert.deepEqual(await ended(context.engine, queue), { expired: 2, deadLettered: 0 }),
      )
      assert.equal((await context.engine.channels.info('queues', queue))?.queue?.waiting, 0)
    },
  ),

  isolatedCase(
    'retention - expired messages move to the dead-letter queue of the message, or of the queue',
    async ({ engine, channel }) => {
      const [queue, own, common] = [channel('moves'), channel('own'), channel('common')]
      const settings = (seconds: number) => [
        ofQueue(queue, {
          retention: retention({ max_age_seconds: seconds, on_expiry: 'dead_letter' }),
          retry: deadLetters(common),
        }),
      ]
      engine.settings.replace(settings(HOUR_SECONDS))
      await engine.queues.send(queue, queued('a', { tags: { color: 'red' } }))
      await engine.queues.send(queue, queued('b', { deadLetterQueue: own }))
      await engine.queues.send(queue, queued('c', { expirationMs: 1 }))
      await engine.queues.send(queue, queued('d', { expirationMs: 1, delayMs: 60_000 }))
      const moved = await receiveMany(engine, common, 2)
      assert.deepEqual(new Set(texts(moved.map((delivery) => delivery.message))), new Set(['c', 'd']))
      assert.deepEqual(await waiting(engine, queue), ['a', 'b'])
      engine.settings.replace(settings(MOMENT_SECONDS))
      const { message } = await receiveOne(engine, common)
      assert.deepEqual(
        [text(message), { ...message.tags }],
        ['a', { color: 'red', dlq_source: queue, dlq_reason: 'expired', dlq_receive_count: '0' }],
      )
      assert.equal(text((await receiveOne(engine, own)).message), 'b')
      await eventually(async () => assert.deepEqual(await ended(engine, queue), { expired: 0, deadLettered: 4 }))
      await assertNothingDue(engine, queue)
    },
  ),

  isolatedCase(
    'retention - a message that expires while it is leased can be acknowledged; a nack moves it',
    async ({ engine, channel }) => {
      const [queue, dead] = [channel('leased'), channel('dead')]
      await sendAll(engine, queue, ['acked', 'nacked'])
      const [acked, nacked] = await receiveMany(engine, queue, 2)
      engine.settings.replace([
        ofQueue(queue, {
          retention: retention({ max_age_seconds: MOMENT_SECONDS, on_expiry: 'dead_letter' }),
          retry: deadLetters(dead),
        }),
      ])
      await assertNothingDue(engine, queue)
      assert.equal((await engine.queues.ack([acked?.receipt ?? ''], CONSUMER)).settled, 1)
      assert.equal((await engine.queues.nack([nacked?.receipt ?? ''], CONSUMER)).settled, 1)
      const { message } = await receiveOne(engine, dead)
      const { dlq_reason: reason, dlq_receive_count: count } = message.tags
      assert.deepEqual([text(message), reason, count], ['nacked', 'expired', '1'])
      await assertNothingDue(engine, queue)
    },
  ),

  isolatedCase(
    'retention - dead letters are never moved on: they are removed when they expire',
    async ({ engine, channel }) => {
      const [queue, dead, further] = [channel('source'), channel('dead'), channel('further')]
      engine.settings.replace([
        ofQueue('*', { retention: retention({ on_expiry: 'dead_letter' }), retry: deadLetters(dead) }),
      ])
      await engine.queues.send(queue, queued('x', { expirationMs: 1 }))
      await eventually(async () => assert.deepEqual(await waiting(engine, dead), ['x']))
      engine.settings.replace([
        ofQueue(dead, {
          retention: retention({ max_age_seconds: MOMENT_SECONDS, on_expiry: 'dead_letter' }),
          retry: deadLetters(further),
        }),
      ])
      await eventually(async () => assert.deepEqual(await ended(engine, dead), { expired: 1, deadLettered: 0 }))
      assert.equal(engine.channels.exists('queues', further), false)
    },
  ),

  isolatedCase('retention - without a dead-letter queue expired messages are removed', async ({ engine, channel }) => {
    const queue = channel('none')
    engine.settings.replace([ofQueue(queue, { retention: retention({ on_expiry: 'dead_letter' }) })])
    await engine.queues.send(queue, queued('x', { expirationMs: 1 }))
    await eventually(async () => assert.deepEqual(await ended(engine, queue), { expired: 1, deadLettered: 0 }))
  }),

  isolatedCase(
    'retention - the limits of a queue win over those of the server, and 0 means unlimited',
    async ({ engine, channel }) => {
      const [queue, small, free] = [channel('large'), channel('small'), channel('free')]
      engine.settings.replace([
        ofQueue(queue, { retention: retention({ max_messages: 3 }) }),
        ofQueue(small, { retention: retention({ max_bytes: 4_000 }) }),
        ofQueue(free, { retention: retention({}) }),
      ])
      await sendAll(engine, queue, numbered(3))
      const error = await rejectsWith('QUEUE_FULL', engine.queues.send(queue, queued('too many')))
      assert.equal(error.details['limit'], 3)
      assert.match(error.message, /retention\.max_messages/)
      await rejectsWith('QUEUE_FULL', engine.queues.sendBatch(small, [queued('x'.repeat(5_000))]))
      await sendAll(engine, free, numbered(5))
      const unmatched = channel('unmatched')
      await sendAll(engine, unmatched, numbered(2))
      await rejectsWith('QUEUE_FULL', engine.queues.send(unmatched, queued('too many')))
    },
    { queueMaxMessages: 2 },
  ),

  isolatedCase(
    'retention - a lower limit refuses sends to a queue that has more, and removes nothing',
    async ({ engine, channel }) => {
      const queue = channel('lower')
      await sendAll(engine, queue, numbered(3))
      engine.settings.replace([ofQueue(queue, { retention: retention({ max_messages: 1, max_bytes: 1 }) })])
      await eventually(() => rejectsWith('QUEUE_FULL', engine.queues.send(queue, queued('x'))).then(() => undefined))
      const extra = (await waiting(engine, queue)).filter((body) => body === 'x').length
      assert.equal((await receiveMany(engine, queue, 3 + extra)).length, 3 + extra)
      engine.settings.replace([])
      await eventually(async () => void (await engine.queues.send(queue, queued('again'))))
    },
  ),

  isolatedCase(
    'retention - the age and the size of an events store win over those of the server, also for stored events',
    async ({ engine, channel }) => {
      const [aged, sized, kept] = [channel('aged'), channel('sized'), channel('kept')]
      for (const store of [aged, sized, kept])
        await appendAll(
          engine,
          store,
          numbered(3).map((n) => n.padEnd(500)),
        )
      engine.settings.replace([ofStore(aged, { max_age_seconds: 0.2 }), ofStore(sized, { max_bytes: 1_200 })])
      await eventually(async () => assert.deepEqual(await bodies(engine, aged), []))
      await eventually(async () => assert.ok((await bodies(engine, sized)).length < 3))
      assert.equal((await bodies(engine, sized)).at(-1)?.trim(), 'm3')
      assert.equal((await bodies(engine, kept)).length, 3)
    },
    { eventsStoreMaxBytes: 1_000_000 },
  ),

  isolatedCase(
    'retention - compact keeps the last event of each group, and every event without a group',
    async ({ engine, channel }) => {
      const [store, plain] = [channel('compact'), channel('plain')]
      engine.settings.replace([ofStore('compact-*', { compact: true })])
      await engine.channels.create('events_store', `${store}-empty`)
      for (const name of [store, `${store}-empty`, plain]) {
        await engine.eventsStore.append(name, storedEvent('a1', { tags: { group: 'a' } }))
        await engine.eventsStore.append(name, storedEvent('b1', { tags: { group: 'a', ce_partitionkey: 'b' } }))
        await engine.eventsStore.append(name, storedEvent('none'))
        await engine.eventsStore.append(name, storedEvent('a2', { tags: { ce_partitionkey: 'a' } }))
        await engine.eventsStore.append(name, storedEvent('none'))
      }
      const compacted = ['b1', 'none', 'a2', 'none']
      await eventually(async () => assert.deepEqual(await bodies(engine, store), compacted))
      await eventually(async () => assert.deepEqual(await bodies(engine, `${store}-empty`), compacted))
      assert.equal((await bodies(engine, plain)).length, 5)
      assert.equal((await engine.eventsStore.getLast(store, 'a'))?.sequence, 4)
      engine.settings.replace([])
      await engine.eventsStore.append(store, storedEvent('a3', { tags: { group: 'a' } }))
      assert.deepEqual(await bodies(engine, store), [...compacted, 'a3'], 'without the setting nothing is replaced')
    },
  ),

  isolatedCase(
    'retention - a store with events is not compacted, and the engine says so',
    async ({ engine, channel }) => {
      const [store, empty] = [channel('logs'), channel('empty')]
      for (const body of ['a1', 'a2']) {
        await engine.eventsStore.append(store, storedEvent(body, { tags: { group: 'a' } }))
      }
      await engine.channels.create('events_store', empty)
      const compact = ofStore('logs-*', { compact: true })
      const problem = await engine.settingProblem(compact)
      assert.ok(problem?.includes(store), problem)
      assert.equal(await engine.settingProblem(ofStore(empty, { compact: true })), undefined)
      assert.equal(await engine.settingProblem(ofStore('logs-*', {})), undefined)
      engine.settings.replace([ofStore(store, {})])
      assert.equal(await engine.settingProblem(compact), undefined, 'a more specific entry applies to the store')
      engine.settings.replace([compact])
      await engine.eventsStore.append(store, storedEvent('a3', { tags: { group: 'a' } }))
      assert.deepEqual(await bodies(engine, store), ['a1', 'a2', 'a3'])
      await engine.channels.delete('events_store', store)
      assert.equal(await engine.settingProblem(compact), undefined)
    },
  ),

  isolatedCase(
    'retention - a durable group of a compacted store works on the last event of each group, never on a replaced one',
    async (context) => {
      const store = context.channel('debounce')
      const settings = [ofStore('debounce-*', { compact: true })]
      const trigger = (group: string, n: number): Promise<unknown> =>
        context.engine.eventsStore.append(store, storedEvent(`${group}${n}`, { tags: { group } }))
      const seen = new Inbox<StoredEvent>()
      const busy = Promise.withResolvers<void>()
      const options = { group: 'workers', durable: true }
      context.engine.settings.replace(settings)
      const worker = await context.engine.eventsStore.subscribe(store, { from: 'first' }, options, async (event) => {
        seen.push(event)
        await busy.promise
      })
      await trigger('a', 1)
      await seen.take(1)
      for (const n of [2, 3, 4]) for (const group of ['a', 'b']) await trigger(group, n)
      busy.resolve()
      assert.deepEqual(texts(await seen.take(3)), ['a1', 'a4', 'b4'])
      await trigger('c', 1)
      await seen.take(4)
      await worker.close()
      for (const n of [5, 6]) for (const group of ['b', 'a']) await trigger(group, n)
      await context.restart()
      context.engine.settings.replace(settings)
      await trigger('c', 2)
      const { inbox } = await follow(context.engine, store, { from: 'first' }, options)
      await inbox.until((items) => items.some((event) => text(event) === 'c2'), 'the last event')
      assert.deepEqual(
        texts(inbox.items).filter((body) => body !== 'c1'),
        ['b6', 'a6', 'c2'],
      )
    },
  ),
]
