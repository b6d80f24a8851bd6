import assert from 'node:assert/strict'

import type { Engine } from '../engine/engine.ts'
import type { EventsStoreSubscribeOptions } from '../engine/event-engine.ts'
import type { EventsStoreStart } from '../engine/events-store-engine.ts'
import type { Subscription } from '../engine/subscription.ts'
import type { StoredEvent } from '../message.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, Inbox, pause, rejectsBecause, within } from './contract-case.ts'
import { appendAll, numbered, storedEvent, text, texts } from './messages.ts'

export async function follow(
  engine: Engine,
  store: string,
  start: EventsStoreStart,
  options: EventsStoreSubscribeOptions = {},
): Promise<{ inbox: Inbox<StoredEvent>; subscription: Subscription }> {
  const inbox = new Inbox<StoredEvent>()
  const subscription = await engine.eventsStore.subscribe(store, start, options, inbox.push)
  return { inbox, subscription }
}

function sequences(entries: readonly StoredEvent[]): number[] {
  return entries.map(({ sequence }) => sequence)
}

function upTo(last: number, first = 1): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
}

/** Cases for subscriptions to an events store, from each possible start. */
export const eventsStoreSubscriptionCases: readonly ContractCase[] = [
  contractCase('events store - a subscription from new gets later entries', async ({ engine, channel }) => {
    const store = channel('new')
    await appendAll(engine, store, numbered(3))
    const { inbox } = await follow(engine, store, { from: 'new' })
    await appendAll(engine, store, ['after', 'later'])
    assert.deepEqual(texts(await inbox.take(2)), ['after', 'later'])
    assert.deepEqual(sequences(inbox.items), [4, 5])
  }),

  contractCase(
    'events store - a subscription from first gets all entries, then new ones',
    async ({ engine, channel }) => {
      const store = channel('first')
      await appendAll(engine, store, numbered(3))
      const { inbox } = await follow(engine, store, { from: 'first' })
      assert.deepEqual(texts(await inbox.take(3)), numbered(3))
      await appendAll(engine, store, ['after'])
      assert.deepEqual(sequences(await inbox.take(4)), upTo(4))
    },
  ),

  contractCase(
    'events store - a subscription from last gets the last entry, then new ones',
    async ({ engine, channel }) => {
      const store = channel('last')
      await appendAll(engine, store, numbered(3))
      const { inbox } = await follow(engine, store, { from: 'last' })
      await appendAll(engine, store, ['after'])
      assert.deepEqual(texts(await inbox.take(2)), ['m3', 'after'])
    },
  ),

  contractCase('events store - a subscription from a sequence starts there', async ({ engine, channel }) => {
    const store = channel('sequence')
    await appendAll(engine, store, numbered(5))
    const { inbox } = await follow(engine, store, { from: 'sequence', sequence: 4 })
    await appendAll(engine, store, ['after'])
    assert.deepEqual(sequences(await inbox.take(3)), [4, 5, 6])
  }),

  contractCase('events store - a subscription from a future sequence waits for it', async ({ engine, channel }) => {
    const store = channel('sequence-ahead')
    await appendAll(engine, store, numbered(2))
    const { inbox } = await follow(engine, store, { from: 'sequence', sequence: 5 })
    await appendAll(engine, store, numbered(4, 'n'))
    assert.deepEqual(sequences(await inbox.take(2)), [5, 6])
  }),

  contractCase(
    'events store - a subscription from a time starts with the first entry at or after it',
    async ({ engine, channel }) => {
      const store = channel('time')
      await appendAll(engine, store, ['m1'])
      await pause(20)
      const { timestamp } = await engine.eventsStore.append(store, storedEvent('m2'))
      await pause(20)
      await appendAll(engine, store, ['m3'])
      const { inbox } = await follow(engine, store, { from: 'time', timestamp })
      const { inbox: all } = await follow(engine, store, { from: 'time', timestamp: 1 })
      await appendAll(engine, store, ['m4'])
      assert.deepEqual(texts(await inbox.take(3)), ['m2', 'm3', 'm4'])
      assert.deepEqual(texts(await all.take(4)), numbered(4))
    },
  ),

  contractCase('events store - a subscription from a delta starts that long ago', async ({ engine, channel }) => {
    const store = channel('delta')
    await appendAll(engine, store, numbered(2))
    await pause(1_500)
    const { inbox: all } = await follow(engine, store, { from: 'delta', milliseconds: 60_000 })
    const { inbox: recent } = await follow(engine, store, { from: 'delta', milliseconds: 500 })
    await appendAll(engine, store, ['after'])
    assert.deepEqual(texts(await all.take(3)), ['m1', 'm2', 'after'])
    assert.deepEqual(texts(await recent.take(1)), ['after'])
  }),

  contractCase('events store - a subscription may precede the first entry', async ({ engine, channel }) => {
    for (const start of [
      { from: 'new' },
      { from: 'first' },
      { from: 'last' },
      { from: 'sequence', sequence: 1 },
    ] as const) {
      const store = channel(`before-${start.from}`)
      const { inbox } = await follow(engine, store, start)
      await appendAll(engine, store, numbered(3))
      assert.deepEqual(sequences(await inbox.take(3)), [1, 2, 3])
    }
  }),

  contractCase('events store - an entry is delivered as it was appended', async ({ engine, channel }) => {
    const store = channel('whole')
    const { inbox } = await follow(engine, store, { from: 'new' })
    const { timestamp } = await engine.eventsStore.append(
      store,
      storedEvent('live', { id: 'one', metadata: 'm', tags: { a: 'b' } }),
    )
    const { inbox: stored } = await follow(engine, store, { from: 'first' })
    for (const [entry] of [await inbox.take(1), await stored.take(1)]) {
      assert.ok(entry)
      assert.deepEqual(
        [entry.id, entry.channel, text(entry), entry.metadata, { ...entry.tags }, entry.sequence, entry.timestamp],
        ['one', store, 'live', 'm', { a: 'b' }, 1, timestamp],
      )
    }
  }),

  contractCase('events store - no gap or repeat between stored and new entries', async ({ engine, channel }) => {
    const store = channel('seam')
    const total = 400
    const producing = (async () => {
      for (let i = 0; i < total; i += 10) {
        await Promise.all(numbered(10).map((body) => engine.eventsStore.append(store, storedEvent(body))))
      }
    })()
    const followers = []
    for (let i = 0; i < 8; i += 1) {
      const inbox = new Inbox<StoredEvent>()
      // Some listeners are slow, so that they fall behind and catch up.
      await engine.eventsStore.subscribe(store, { from: 'first' }, {}, async (entry) => {
        inbox.push(entry)
        if (entry.sequence % 16 < i) await pause(1)
      })
      followers.push(inbox)
      await pause(i)
    }
    await producing
    for (const inbox of followers) assert.deepEqual(sequences(await inbox.take(total)), upTo(total))
    const late = await follow(engine, store, { from: 'sequence', sequence: 100 })
    assert.deepEqual(sequences(await late.inbox.take(total - 99)), upTo(total, 100))
  }),

  contractCase('events store - a slow listener delays only itself', async ({ engine, channel }) => {
    const store = channel('slow')
    const release = Promise.withResolvers<void>()
    const slow = new Inbox<StoredEvent>()
    await engine.eventsStore.subscribe(store, { from: 'first' }, {}, async (entry) => {
      slow.push(entry)
      await release.promise
    })
    const { inbox: fast } = await follow(engine, store, { from: 'first' })
    await appendAll(engine, store, numbered(50))
    assert.deepEqual(sequences(await fast.take(50)), upTo(50))
    await slow.take(1)
    assert.deepEqual(sequences(slow.items), [1], 'the next entry waits for the listener')
    release.resolve()
    assert.deepEqual(sequences(await slow.take(50)), upTo(50))
  }),

  contractCase('events store - a closed subscription gets no more entries', async ({ engine, channel }) => {
    const store = channel('close')
    await appendAll(engine, store, numbered(2))
    const closing = await follow(engine, store, { from: 'first' })
    const staying = await follow(engine, store, { from: 'first' })
    await closing.inbox.take(2)
    await closing.subscription.close()
    await closing.subscription.close()
    assert.equal(await within(closing.subscription.closed, 'the subscription to end'), undefined)
    await appendAll(engine, store, ['after'])
    await staying.inbox.take(3)
    assert.deepEqual(sequences(closing.inbox.items), [1, 2])
  }),

  contractCase('events store - closing during a replay stops it', async ({ engine, channel }) => {
    const store = channel('close-replay')
    await Promise.all(numbered(200).map((body) => engine.eventsStore.append(store, storedEvent(body))))
    const inbox = new Inbox<StoredEvent>()
    const ended = Promise.withResolvers<void>()
    const subscription: Subscription = await engine.eventsStore.subscribe(store, { from: 'first' }, {}, (entry) => {
      inbox.push(entry)
      if (entry.sequence === 20) void subscription.close().then(ended.resolve)
    })
    await within(ended.promise, 'the subscription to close')
    const { length } = inbox.items
    const { inbox: other } = await follow(engine, store, { from: 'first' })
    await other.take(200)
    assert.equal(inbox.items.length, length)
    assert.deepEqual(sequences(inbox.items), upTo(20))
  }),

  contractCase('events store - aborting the signal closes the subscription', async ({ engine, channel }) => {
    const store = channel('abort')
    const leaving = new AbortController()
    const { inbox, subscription } = await follow(engine, store, { from: 'first' }, { signal: leaving.signal })
    leaving.abort(new Error('gone'))
    assert.equal(await within(subscription.closed, 'the subscription to end'), undefined)
    const { inbox: staying } = await follow(engine, store, { from: 'first' })
    await appendAll(engine, store, ['after'])
    await staying.take(1)
    assert.deepEqual(inbox.items, [])
    const reason = new Error('gone before it began')
    await rejectsBecause(
      reason,
      engine.eventsStore.subscribe(store, { from: 'new' }, { signal: AbortSignal.abort(reason) }, inbox.push),
    )
  }),

  contractCase(
    'events store - a subscription continues when its events store is deleted and created again',
    async ({ engine, channel }) => {
      const store = channel('recreated')
      await appendAll(engine, store, numbered(3))
      const { inbox } = await follow(engine, store, { from: 'first' })
      await inbox.take(3)
      assert.equal(await engine.channels.delete('events_store', store), true)
      assert.equal((await engine.eventsStore.append(store, storedEvent('anew'))).sequence, 1)
      const items = await inbox.take(4)
      assert.deepEqual(texts(items), [...numbered(3), 'anew'])
      assert.deepEqual(sequences(items), [1, 2, 3, 1])
    },
  ),
]
