import assert from 'node:assert/strict'

import type { StoredEvent } from '../message.ts'
import { contractCase } from './contract-case.ts'
import type { ContractCase } from './contract-case.ts'
import { follow } from './events-store-subscriptions.ts'
import { appendAll, storedEvent, numbered, text, texts } from './messages.ts'
import { eventually, Inbox, within } from './waiting.ts'

/** Cases for groups, whose subscribers share one position in an events store. */
export const eventsStoreGroupCases: readonly ContractCase[] = [
  contractCase('events store - each entry goes to one subscriber of a group', async ({ engine, channel }) => {
    const store = channel('shared')
    await appendAll(engine, store, numbered(20))
    const shared = new Inbox<string>()
    for (let member = 0; member < 3; member += 1) {
      await engine.eventsStore.subscribe(store, { from: 'first' }, { group: 'g' }, (entry) => shared.push(text(entry)))
    }
    const alone = await follow(engine, store, { from: 'first' })
    const other = await follow(engine, store, { from: 'first' }, { group: 'other' })
    await Promise.all(numbered(40, 'n').map((body) => engine.eventsStore.append(store, storedEvent(body))))
    await alone.inbox.take(60)
    await shared.take(60)
    assert.deepEqual(texts(await other.inbox.take(60)), texts(alone.inbox.items))
    assert.deepEqual(shared.items.toSorted(), texts(alone.inbox.items).toSorted())
  }),

  contractCase('events store - a slow subscriber of a group does not delay the others', async ({ engine, channel }) => {
    const store = channel('slow-member')
    const release = Promise.withResolvers<void>()
    const slow = new Inbox<StoredEvent>()
    await engine.eventsStore.subscribe(store, { from: 'first' }, { group: 'g' }, async (entry) => {
      slow.push(entry)
      await release.promise
    })
    await appendAll(engine, store, ['held'])
    await slow.take(1)
    const fast = await follow(engine, store, { from: 'first' }, { group: 'g' })
    await appendAll(engine, store, numbered(20))
    assert.deepEqual(texts(await fast.inbox.take(20)), numbered(20))
    assert.deepEqual(texts(slow.items), ['held'])
    release.resolve()
  }),

  contractCase(
    'events store - a later subscriber of a group continues at the group’s position, not at its own start',
    async ({ engine, channel }) => {
      const store = channel('joins')
      await appendAll(engine, store, numbered(3))
      const first = await follow(engine, store, { from: 'first' }, { group: 'g' })
      await first.inbox.take(3)
      const second = await follow(engine, store, { from: 'first' }, { group: 'g' })
      await appendAll(engine, store, numbered(10, 'n'))
      await eventually(() => assert.equal(first.inbox.items.length + second.inbox.items.length, 13))
      assert.deepEqual(
        texts([...first.inbox.items, ...second.inbox.items]).toSorted(),
        [...numbered(3), ...numbered(10, 'n')].toSorted(),
      )
    },
  ),

  contractCase(
    'events store - a group’s position exists as long as the group has a subscriber',
    async ({ engine, channel }) => {
      const store = channel('position')
      await appendAll(engine, store, numbered(3))
      const first = await follow(engine, store, { from: 'first' }, { group: 'g' })
      await first.inbox.take(3)
      const second = await follow(engine, store, { from: 'new' }, { group: 'g' })
      await first.subscription.close()
      await appendAll(engine, store, ['for the second'])
      assert.deepEqual(texts(await second.inbox.take(1)), ['for the second'])
      await second.subscription.close()
      await appendAll(engine, store, ['for nobody'])
      const anew = await follow(engine, store, { from: 'first' }, { group: 'g' })
      assert.deepEqual(texts(await anew.inbox.take(5)), [...numbered(3), 'for the second', 'for nobody'])
    },
  ),

  contractCase(
    'events store - an entry that a leaving subscriber did not finish goes to another',
    async ({ engine, channel }) => {
      const store = channel('leaving')
      const taken = new Inbox<StoredEvent>()
      const leaving = await engine.eventsStore.subscribe(store, { from: 'first' }, { group: 'g' }, (entry) => {
        taken.push(entry)
        return new Promise<void>(() => {})
      })
      await appendAll(engine, store, ['unfinished'])
      await taken.take(1)
      const staying = await follow(engine, store, { from: 'first' }, { group: 'g' })
      await appendAll(engine, store, ['next'])
      assert.deepEqual(texts(await staying.inbox.take(1)), ['next'])
      await within(leaving.close(), 'the subscriber to leave')
      assert.deepEqual(texts(await staying.inbox.take(2)), ['next', 'unfinished'])
    },
  ),

  contractCase(
    'events store - an entry whose listener rejected goes to another subscriber',
    async ({ engine, channel }) => {
      const store = channel('rejecting')
      const rejected = new Inbox<StoredEvent>()
      await engine.eventsStore.subscribe(store, { from: 'first' }, { group: 'g' }, async (entry) => {
        rejected.push(entry)
        throw new Error('of the listener')
      })
      await appendAll(engine, store, ['one'])
      await rejected.take(1)
      const good = await follow(engine, store, { from: 'first' }, { group: 'g' })
      await appendAll(engine, store, numbered(10))
      await good.inbox.until((entries) => entries.length >= 11, 'every entry at the working subscriber')
      assert.deepEqual(new Set(texts(good.inbox.items)), new Set(['one', ...numbered(10)]))
      assert.equal(good.inbox.items.length, 11)
    },
  ),

  contractCase('events store - groups of different events stores are separate', async ({ engine, channel }) => {
    const [one, two] = [channel('one'), channel('two')]
    const first = await follow(engine, one, { from: 'first' }, { group: 'g' })
    const second = await follow(engine, two, { from: 'first' }, { group: 'g' })
    await appendAll(engine, one, numbered(5))
    await appendAll(engine, two, numbered(5))
    assert.deepEqual(texts(await first.inbox.take(5)), numbered(5))
    assert.deepEqual(texts(await second.inbox.take(5)), numbered(5))
  }),
]
