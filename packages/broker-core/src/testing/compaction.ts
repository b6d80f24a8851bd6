import assert from 'node:assert/strict'

import type { Engine } from '../engine/engine.ts'
import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, isolatedCase, rejectsWith } from './contract-case.ts'
import { follow } from './events-store-subscriptions.ts'
import { storedEvent, text, texts } from './messages.ts'

async function put(
  engine: Engine,
  store: string,
  key: string,
  body: string,
  expectLastOfKey?: number,
): Promise<number> {
  const { sequence } = await engine.eventsStore.append(store, storedEvent(body, { key, expectLastOfKey }))
  return sequence
}

async function all(engine: Engine, store: string): Promise<[number, string][]> {
  const entries = await engine.eventsStore.read(store, { maxMessages: 1_000 })
  return entries.map((entry) => [entry.sequence, text(entry)])
}

/** Cases for compacted events stores, which keep the last entry of each key. */
export const compactionCases: readonly ContractCase[] = [
  contractCase('compaction - a compacted store keeps the last entry of each key', async ({ engine, channel }) => {
    const store = channel('keeps')
    assert.equal(await engine.channels.create('events_store', store, { compacted: true }), true)
    assert.equal(await put(engine, store, 'a', 'a1'), 1)
    assert.equal(await put(engine, store, 'b', 'b1'), 2)
    assert.equal(await put(engine, store, 'a', 'a2'), 3)
    assert.equal(await put(engine, store, 'c', 'c1'), 4)
    assert.equal(await put(engine, store, 'a', 'a3'), 5)
    await eventually(async () => {
      assert.deepEqual(await all(engine, store), [
        [2, 'b1'],
        [4, 'c1'],
        [5, 'a3'],
      ])
    })
    assert.deepEqual(texts(await engine.eventsStore.readLatest(store, { maxMessages: 10 })), ['a3', 'c1', 'b1'])
    const state = (await engine.channels.info('events_store', store))?.eventsStore
    assert.deepEqual([state?.firstSequence, state?.lastSequence, state?.entries], [2, 5, 3])
  }),

  contractCase('compaction - entries without a key are all kept', async ({ engine, channel }) => {
    const store = channel('keyless')
    await engine.channels.create('events_store', store, { compacted: true })
    await engine.eventsStore.append(store, storedEvent('x'))
    await put(engine, store, 'a', 'a1')
    await engine.eventsStore.append(store, storedEvent('y'))
    await put(engine, store, 'a', 'a2')
    await engine.eventsStore.append(store, storedEvent('z'))
    await eventually(async () => {
      assert.deepEqual(
        (await all(engine, store)).map(([, body]) => body),
        ['x', 'y', 'a2', 'z'],
      )
    })
  }),

  contractCase('compaction - a store without compaction keeps every entry of a key', async ({ engine, channel }) => {
    const store = channel('plain')
    await put(engine, store, 'a', 'a1')
    await put(engine, store, 'a', 'a2')
    assert.deepEqual(await all(engine, store), [
      [1, 'a1'],
      [2, 'a2'],
    ])
    const [entry] = await engine.eventsStore.read(store, { maxMessages: 1 })
    assert.equal(entry?.key, 'a')
  }),

  contractCase(
    'compaction - getLast returns the last entry of a key, or undefined for an unused key',
    async ({ engine, channel }) => {
      const store = channel('get-last')
      await engine.channels.create('events_store', store, { compacted: true })
      await put(engine, store, 'a', 'a1')
      await put(engine, store, 'a', 'a2')
      await engine.eventsStore.append(store, storedEvent('keyless'))
      const entry = await engine.eventsStore.getLast(store, 'a')
      assert.ok(entry)
      assert.deepEqual([text(entry), entry.sequence, entry.key, entry.tombstone], ['a2', 2, 'a', undefined])
      assert.equal(entry.channel, store)
      assert.equal(await engine.eventsStore.getLast(store, 'b'), undefined)
      assert.equal(await engine.eventsStore.getLast(store, ''), undefined)
    },
  ),

  isolatedCase(
    'compaction - keys may contain any characters, and are compared exactly',
    async ({ engine, channel }) => {
      const store = channel('keys')
      await engine.channels.create('events_store', store, { compacted: true })
      const keys = ['a', 'A', 'a ', 'a.b', 'a/b', '*', '>', '__proto__', 'größe 🙂', 'x'.repeat(200), 'a\nb']
      for (const key of keys) await put(engine, store, key, `of ${key}`)
      for (const key of keys) {
        const entry = await engine.eventsStore.getLast(store, key)
        assert.equal(entry && text(entry), `of ${key}`)
        assert.equal(entry?.key, key)
      }
      assert.equal((await all(engine, store)).length, keys.length)
    },
  ),

  contractCase(
    'compaction - an append with a wrong expected last entry conflicts and writes nothing',
    async ({ engine, channel }) => {
      const store = channel('conflict')
      await engine.channels.create('events_store', store, { compacted: true })
      const first = await put(engine, store, 'a', 'a1', 0)
      const error = await rejectsWith('CONFLICT', put(engine, store, 'a', 'too late', 0))
      assert.equal(error.details['key'], 'a')
      assert.equal(error.details['last'], first)
      await rejectsWith('CONFLICT', put(engine, store, 'a', 'ahead', first + 1))
      await rejectsWith('CONFLICT', put(engine, store, 'b', 'of nothing', first))
      assert.deepEqual(await all(engine, store), [[1, 'a1']])
      const second = await put(engine, store, 'a', 'a2', first)
      assert.equal(second, 2, 'a conflict uses no sequence')
      await rejectsWith('CONFLICT', put(engine, store, 'a', 'too late', first))
    },
  ),

  contractCase('compaction - changes to other keys cause no conflict', async ({ engine, channel }) => {
    const store = channel('other-keys')
    await engine.channels.create('events_store', store, { compacted: true })
    const first = await put(engine, store, 'a', 'a1', 0)
    await put(engine, store, 'b', 'b1', 0)
    await engine.eventsStore.append(store, storedEvent('keyless'))
    assert.equal(await put(engine, store, 'a', 'a2', first), 4)
  }),

  contractCase('compaction - one of many concurrent first writers succeeds', async ({ engine, channel }) => {
    const store = channel('race')
    await engine.channels.create('events_store', store, { compacted: true })
    let last = 0
    for (let round = 0; round < 5; round += 1) {
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, async (_, i) => {
          try {
            return await put(engine, store, 'a', `${round} ${i}`, last)
          } catch (error) {
            await rejectsWith('CONFLICT', Promise.reject(error))
            return undefined
          }
        }),
      )
      const winners = outcomes.filter((sequence) => sequence !== undefined)
      assert.equal(winners.length, 1)
      last = winners[0] ?? 0
    }
    assert.equal((await engine.eventsStore.getLast(store, 'a'))?.sequence, last)
  }),

  contractCase('compaction - a tombstone replaces the key’s entry and is delivered', async ({ engine, channel }) => {
    const store = channel('tombstone')
    await engine.channels.create('events_store', store, { compacted: true })
    await put(engine, store, 'a', 'a1')
    await put(engine, store, 'b', 'b1')
    const { sequence } = await engine.eventsStore.append(store, storedEvent('', { key: 'a', tombstone: true }))
    assert.equal(sequence, 3)
    const last = await engine.eventsStore.getLast(store, 'a')
    assert.deepEqual([last?.sequence, last?.tombstone, last?.key], [3, true, 'a'])
    await eventually(async () => {
      const entries = await engine.eventsStore.read(store, { maxMessages: 10 })
      assert.deepEqual(
        entries.map((entry) => [entry.sequence, entry.tombstone]),
        [
          [2, undefined],
          [3, true],
        ],
      )
    })
  }),

  contractCase(
    'compaction - a conditional append after a tombstone expects the tombstone',
    async ({ engine, channel }) => {
      const store = channel('tombstone-expected')
      await engine.channels.create('events_store', store, { compacted: true })
      const first = await put(engine, store, 'a', 'a1', 0)
      const { sequence } = await engine.eventsStore.append(
        store,
        storedEvent('', { key: 'a', tombstone: true, expectLastOfKey: first }),
      )
      await rejectsWith('CONFLICT', put(engine, store, 'a', 'a2', 0))
      await rejectsWith('CONFLICT', put(engine, store, 'a', 'a2', first))
      assert.equal(await put(engine, store, 'a', 'a2', sequence), 3)
      assert.equal((await engine.eventsStore.getLast(store, 'a'))?.tombstone, undefined)
    },
  ),

  contractCase(
    'compaction - of appends at the same time that expect a new key, one for each key is accepted',
    async ({ engine, channel }) => {
      const store = channel('first-of-key')
      await engine.channels.create('events_store', store, { compacted: true })
      const keys = ['a', 'b', 'a', 'c', 'b', 'a']
      const outcomes = await Promise.allSettled(keys.map((key, i) => put(engine, store, key, String(i), 0)))
      const written = outcomes.flatMap(({ status }, i) => (status === 'fulfilled' ? [String(i)] : []))
      assert.deepEqual(written.map((i) => keys[Number(i)] ?? '').toSorted(), ['a', 'b', 'c'])
      assert.deepEqual(texts(await engine.eventsStore.read(store, { maxMessages: 10 })).toSorted(), written)
      for (const key of ['a', 'b', 'c']) {
        const last = await engine.eventsStore.getLast(store, key)
        await rejectsWith('CONFLICT', put(engine, store, key, 'late', 0))
        assert.ok(last !== undefined && (await put(engine, store, key, 'next', last.sequence)) > last.sequence)
      }
    },
  ),

  contractCase(
    'C5 - compaction: a retry with the same id is a duplicate, not a conflict',
    async ({ engine, channel }) => {
      const store = channel('retry')
      await engine.channels.create('events_store', store, { compacted: true })
      const more = { key: 'a', expectLastOfKey: 0, deduplicationId: 'once' }
      const first = await engine.eventsStore.append(store, storedEvent('a1', more))
      const again = await engine.eventsStore.append(store, storedEvent('a1', more))
      assert.deepEqual([first.duplicate, again.duplicate, again.sequence], [false, true, first.sequence])
    },
  ),

  contractCase(
    'compaction - a subscriber gets the last entry of each key, then every change',
    async ({ engine, channel }) => {
      const store = channel('follow')
      await engine.channels.create('events_store', store, { compacted: true })
      for (const [key, body] of [
        ['a', 'a1'],
        ['b', 'b1'],
        ['a', 'a2'],
      ] as const) {
        await put(engine, store, key, body)
      }
      await eventually(async () => assert.equal((await all(engine, store)).length, 2))
      const { inbox } = await follow(engine, store, { from: 'first' })
      assert.deepEqual(texts(await inbox.take(2)), ['b1', 'a2'])
      await put(engine, store, 'b', 'b2')
      await inbox.take(3)
      await engine.eventsStore.append(store, storedEvent('', { key: 'a', tombstone: true }))
      const [, , change, deletion] = await inbox.take(4)
      assert.deepEqual([change?.key, change && text(change), change?.sequence], ['b', 'b2', 4])
      assert.deepEqual([deletion?.key, deletion?.tombstone, deletion?.sequence], ['a', true, 5])
    },
  ),

  contractCase('compaction - two subscribers reach the same state while keys change', async ({ engine, channel }) => {
    const store = channel('agree')
    await engine.channels.create('events_store', store, { compacted: true })
    const views = await Promise.all(
      [1, 2].map(async () => {
        const view = new Map<string, number>()
        let previous = 0
        await engine.eventsStore.subscribe(store, { from: 'first' }, {}, (entry) => {
          assert.ok(entry.sequence > previous, 'sequences only grow')
          previous = entry.sequence
          view.set(entry.key ?? '', entry.sequence)
        })
        return view
      }),
    )
    const keys = ['a', 'b', 'c', 'd', 'e']
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(keys.map((key) => put(engine, store, key, `${round}`)))
    }
    const entries = await engine.eventsStore.read(store, { maxMessages: 1_000 })
    const expected = new Map(entries.map(({ key = '', sequence }) => [key, sequence]))
    assert.equal(expected.size, keys.length)
    for (const view of views) {
      await eventually(() => assert.deepEqual(view, expected))
    }
  }),

  isolatedCase('compaction - keys, sequences and tombstones survive a restart', async (context) => {
    const store = context.channel('restart')
    await context.engine.channels.create('events_store', store, { compacted: true })
    await put(context.engine, store, 'a', 'a1')
    await put(context.engine, store, 'a', 'a2')
    await put(context.engine, store, 'b', 'b1')
    await context.engine.eventsStore.append(store, storedEvent('', { key: 'b', tombstone: true }))
    await context.restart()
    const { engine } = context
    assert.equal((await engine.eventsStore.getLast(store, 'a'))?.sequence, 2)
    assert.equal((await engine.eventsStore.getLast(store, 'b'))?.tombstone, true)
    await rejectsWith('CONFLICT', put(engine, store, 'a', 'x', 0))
    assert.equal(await put(engine, store, 'a', 'a3', 2), 5)
    await eventually(async () => assert.equal((await all(engine, store)).length, 2))
  }),
]
