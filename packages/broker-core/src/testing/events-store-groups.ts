import assert from 'node:assert/strict'

import type { StoredEvent } from '../message.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, Inbox, isolatedCase, pause, rejectsWith, within } from './contract-case.ts'
import { follow } from './events-store-subscriptions.ts'
import { appendAll, numbered, storedEvent, text, texts } from './messages.ts'

const DURABLE = { group: 'g', durable: true } as const

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

  // ── Durable groups, whose position survives their subscribers ──

  contractCase(
    'events store - a durable group continues at its position after all its subscribers left',
    async ({ engine, channel }) => {
      const store = channel('durable')
      await appendAll(engine, store, numbered(3))
      const first = await follow(engine, store, { from: 'first' }, DURABLE)
      await first.inbox.take(3)
      await first.subscription.close()
      await appendAll(engine, store, ['while away'])
      const second = await follow(engine, store, { from: 'new' }, DURABLE)
      await appendAll(engine, store, ['after'])
      assert.deepEqual(texts(await second.inbox.take(2)), ['while away', 'after'])
      await second.subscription.close()
      const third = await follow(engine, store, { from: 'first' }, DURABLE)
      await appendAll(engine, store, ['last'])
      assert.deepEqual(texts(await third.inbox.take(1)), ['last'])
    },
  ),

  contractCase(
    'events store - a durable group has its position as soon as its first subscription exists',
    async ({ engine, channel }) => {
      const store = channel('durable-start')
      await appendAll(engine, store, numbered(3))
      const first = await follow(engine, store, { from: 'sequence', sequence: 2 }, DURABLE)
      await first.inbox.take(2)
      await first.subscription.close()
      const idle = await follow(engine, store, { from: 'new' }, { group: 'idle', durable: true })
      await idle.subscription.close()
      await appendAll(engine, store, ['while away'])
      const again = await follow(engine, store, { from: 'first' }, { group: 'idle', durable: true })
      assert.deepEqual(texts(await again.inbox.take(1)), ['while away'])
      assert.deepEqual(texts(first.inbox.items), ['m2', 'm3'])
    },
  ),

  contractCase(
    'events store - an entry that the last subscriber of a durable group did not finish is delivered again',
    async ({ engine, channel }) => {
      const store = channel('durable-unfinished')
      const taken = new Inbox<StoredEvent>()
      const leaving = await engine.eventsStore.subscribe(store, { from: 'first' }, DURABLE, (entry) => {
        taken.push(entry)
        return text(entry) === 'm2' ? new Promise<void>(() => {}) : undefined
      })
      await appendAll(engine, store, numbered(3))
      await taken.take(2)
      await leaving.close()
      const next = await follow(engine, store, { from: 'new' }, DURABLE)
      assert.deepEqual(texts(await next.inbox.take(2)).toSorted(), ['m2', 'm3'])
    },
  ),

  contractCase('events store - the subscribers of a durable group share its entries', async ({ engine, channel }) => {
    const store = channel('durable-shared')
    const shared = new Inbox<string>()
    const members = await Promise.all(
      Array.from({ length: 3 }, () =>
        engine.eventsStore.subscribe(store, { from: 'first' }, DURABLE, (entry) => shared.push(text(entry))),
      ),
    )
    await appendAll(engine, store, numbered(30))
    await shared.take(30)
    for (const member of members) await member.close()
    await appendAll(engine, store, ['after'])
    const next = await follow(engine, store, { from: 'first' }, DURABLE)
    assert.deepEqual(texts(await next.inbox.take(1)), ['after'])
    assert.deepEqual(shared.items.toSorted(), numbered(30).toSorted())
  }),

  contractCase(
    'events store - a durable group is another group than one without durable of the same name',
    async ({ engine, channel }) => {
      const store = channel('durable-other')
      const durable = await follow(engine, store, { from: 'first' }, DURABLE)
      const plain = await follow(engine, store, { from: 'first' }, { group: 'g' })
      await appendAll(engine, store, numbered(5))
      assert.deepEqual(texts(await durable.inbox.take(5)), numbered(5))
      assert.deepEqual(texts(await plain.inbox.take(5)), numbered(5))
      await durable.subscription.close()
      await plain.subscription.close()
      await appendAll(engine, store, ['after'])
      const again = await follow(engine, store, { from: 'first' }, DURABLE)
      assert.deepEqual(texts(await again.inbox.take(1)), ['after'])
    },
  ),

  contractCase('events store - deleting a channel deletes its durable groups', async ({ engine, channel }) => {
    const store = channel('durable-deleted')
    await appendAll(engine, store, numbered(3))
    const first = await follow(engine, store, { from: 'first' }, DURABLE)
    await first.inbox.take(3)
    await first.subscription.close()
    await engine.channels.delete('events_store', store)
    await appendAll(engine, store, ['anew'])
    const second = await follow(engine, store, { from: 'first' }, DURABLE)
    assert.deepEqual(texts(await second.inbox.take(1)), ['anew'])
  }),

  contractCase(
    'events store - a durable group with subscribers continues in a channel that is created again',
    async ({ engine, channel }) => {
      const store = channel('durable-again')
      await appendAll(engine, store, numbered(3))
      const first = await follow(engine, store, { from: 'first' }, DURABLE)
      await first.inbox.take(3)
      await engine.channels.delete('events_store', store)
      await appendAll(engine, store, ['n1', 'n2'])
      assert.deepEqual(texts(await first.inbox.take(5)), [...numbered(3), 'n1', 'n2'])
      await first.subscription.close()
      await appendAll(engine, store, ['n3'])
      const second = await follow(engine, store, { from: 'first' }, DURABLE)
      assert.deepEqual(texts(await second.inbox.take(1)), ['n3'])
    },
  ),

  isolatedCase('events store - the positions of durable groups survive a restart', async (context) => {
    const store = context.channel('durable-restart')
    await appendAll(context.engine, store, numbered(3))
    const left = await follow(context.engine, store, { from: 'first' }, { group: 'left', durable: true })
    await left.inbox.take(3)
    await left.subscription.close()
    const taken = new Inbox<StoredEvent>()
    await context.engine.eventsStore.subscribe(store, { from: 'first' }, DURABLE, (entry) => {
      taken.push(entry)
      return text(entry) === 'm3' ? new Promise<void>(() => {}) : undefined
    })
    await taken.take(3)
    await context.restart()
    await appendAll(context.engine, store, ['after'])
    const again = await follow(context.engine, store, { from: 'new' }, { group: 'left', durable: true })
    assert.deepEqual(texts(await again.inbox.take(1)), ['after'])
    const busy = await follow(context.engine, store, { from: 'new' }, DURABLE)
    assert.deepEqual(texts(await busy.inbox.take(2)).toSorted(), ['after', 'm3'])
  }),

  isolatedCase(
    'events store - the position of a durable group expires after its last subscriber left',
    async (context) => {
      const store = context.channel('durable-expiry')
      await appendAll(context.engine, store, numbered(3))
      const first = await follow(context.engine, store, { from: 'first' }, DURABLE)
      await first.inbox.take(3)
      await first.subscription.close()
      await context.restart()
      await pause(4_000)
      const second = await follow(context.engine, store, { from: 'last' }, DURABLE)
      assert.deepEqual(texts(await second.inbox.take(1)), ['m3'])
    },
    { durableGroupMs: 1_000 },
  ),

  isolatedCase(
    'events store - a store has a limited number of durable groups',
    async ({ engine, channel }) => {
      const store = channel('durable-limit')
      const join = (group: string) => follow(engine, store, { from: 'first' }, { group, durable: true })
      const [one] = [await join('one'), await join('two')]
      await rejectsWith('GROUP_LIMIT', join('three'))
      await one.subscription.close()
      await rejectsWith('GROUP_LIMIT', join('three'))
      await join('one')
      await follow(engine, store, { from: 'first' }, { group: 'three' })
      await follow(engine, channel('other'), { from: 'first' }, { group: 'three', durable: true })
    },
    { maxDurableGroups: 2 },
  ),
]
