import assert from 'node:assert/strict'

import type { StoredEvent } from '../message.ts'
import { contractCase, isolatedCase } from './contract-case.ts'
import type { ContractCase } from './contract-case.ts'
import { follow } from './events-store-subscriptions.ts'
import { appendAll, numbered, text, texts } from './messages.ts'
import { Inbox, pause, rejectsWith } from './waiting.ts'

const DURABLE = { group: 'g', durable: true } as const

/** Cases for durable groups, whose position survives their subscribers. */
export const eventsStoreDurableGroupCases: readonly ContractCase[] = [
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
