import assert from 'node:assert/strict'

import type { Engine } from '../engine.ts'
import { contractCase, isolatedCase } from './contract-case.ts'
import type { ContractCase } from './contract-case.ts'
import { follow } from './log-subscriptions.ts'
import { logged, text, texts } from './messages.ts'
import { eventually, rejectsWith } from './waiting.ts'

async function put(engine: Engine, log: string, key: string, body: string, expectLastOfKey?: number): Promise<number> {
  const { sequence } = await engine.logs.append(
    log,
    logged(body, { key, ...(expectLastOfKey === undefined ? {} : { expectLastOfKey }) }),
  )
  return sequence
}

async function all(engine: Engine, log: string): Promise<[number, string][]> {
  const entries = await engine.logs.read(log, { maxMessages: 1_000 })
  return entries.map((entry) => [entry.sequence, text(entry)])
}

/** Compacted logs: the last entry of each key. */
export const compactionCases: readonly ContractCase[] = [
  contractCase('compaction - a compacted log keeps the last entry of each key', async ({ engine, channel }) => {
    const log = channel('keeps')
    assert.equal(await engine.channels.create('events_store', log, { compacted: true }), true)
    assert.equal(await put(engine, log, 'a', 'a1'), 1)
    assert.equal(await put(engine, log, 'b', 'b1'), 2)
    assert.equal(await put(engine, log, 'a', 'a2'), 3)
    assert.equal(await put(engine, log, 'c', 'c1'), 4)
    assert.equal(await put(engine, log, 'a', 'a3'), 5)
    await eventually(async () => {
      assert.deepEqual(await all(engine, log), [
        [2, 'b1'],
        [4, 'c1'],
        [5, 'a3'],
      ])
    })
    assert.deepEqual(texts(await engine.logs.readLatest(log, { maxMessages: 10 })), ['a3', 'c1', 'b1'])
    const state = (await engine.channels.info('events_store', log))?.log
    assert.deepEqual([state?.firstSequence, state?.lastSequence, state?.entries], [2, 5, 3])
  }),

  contractCase('compaction - entries without a key are all kept', async ({ engine, channel }) => {
    const log = channel('keyless')
    await engine.channels.create('events_store', log, { compacted: true })
    await engine.logs.append(log, logged('x'))
    await put(engine, log, 'a', 'a1')
    await engine.logs.append(log, logged('y'))
    await put(engine, log, 'a', 'a2')
    await engine.logs.append(log, logged('z'))
    await eventually(async () => {
      assert.deepEqual(
        (await all(engine, log)).map(([, body]) => body),
        ['x', 'y', 'a2', 'z'],
      )
    })
  }),

  contractCase('compaction - a log that is not compacted keeps every entry of a key', async ({ engine, channel }) => {
    const log = channel('plain')
    await put(engine, log, 'a', 'a1')
    await put(engine, log, 'a', 'a2')
    assert.deepEqual(await all(engine, log), [
      [1, 'a1'],
      [2, 'a2'],
    ])
    const [entry] = await engine.logs.read(log, { maxMessages: 1 })
    assert.equal(entry?.key, 'a')
  }),

  contractCase(
    'compaction - getLast gives the last entry of a key, and nothing for one never written',
    async ({ engine, channel }) => {
      const log = channel('get-last')
      await engine.channels.create('events_store', log, { compacted: true })
      await put(engine, log, 'a', 'a1')
      await put(engine, log, 'a', 'a2')
      await engine.logs.append(log, logged('keyless'))
      const entry = await engine.logs.getLast(log, 'a')
      assert.ok(entry)
      assert.deepEqual([text(entry), entry.sequence, entry.key, entry.tombstone], ['a2', 2, 'a', undefined])
      assert.equal(entry.channel, log)
      assert.equal(await engine.logs.getLast(log, 'b'), undefined)
      assert.equal(await engine.logs.getLast(log, ''), undefined)
    },
  ),

  isolatedCase('compaction - keys may hold any characters and are told apart exactly', async ({ engine, channel }) => {
    const log = channel('keys')
    await engine.channels.create('events_store', log, { compacted: true })
    const keys = ['a', 'A', 'a ', 'a.b', 'a/b', '*', '>', '__proto__', 'größe 🙂', 'x'.repeat(200), 'a\nb']
    for (const key of keys) await put(engine, log, key, `of ${key}`)
    for (const key of keys) {
      const entry = await engine.logs.getLast(log, key)
      assert.equal(entry && text(entry), `of ${key}`)
      assert.equal(entry?.key, key)
    }
    assert.equal((await all(engine, log)).length, keys.length)
  }),

  contractCase(
    'compaction - an append that expects another last entry conflicts and writes nothing',
    async ({ engine, channel }) => {
      const log = channel('conflict')
      await engine.channels.create('events_store', log, { compacted: true })
      const first = await put(engine, log, 'a', 'a1', 0)
      const error = await rejectsWith('CONFLICT', put(engine, log, 'a', 'too late', 0))
      assert.equal(error.details['key'], 'a')
      assert.equal(error.details['last'], first)
      await rejectsWith('CONFLICT', put(engine, log, 'a', 'ahead', first + 1))
      await rejectsWith('CONFLICT', put(engine, log, 'b', 'of nothing', first))
      assert.deepEqual(await all(engine, log), [[1, 'a1']])
      const second = await put(engine, log, 'a', 'a2', first)
      assert.equal(second, 2, 'a conflict takes no sequence')
      await rejectsWith('CONFLICT', put(engine, log, 'a', 'too late', first))
    },
  ),

  contractCase('compaction - what happens to other keys is no conflict', async ({ engine, channel }) => {
    const log = channel('other-keys')
    await engine.channels.create('events_store', log, { compacted: true })
    const first = await put(engine, log, 'a', 'a1', 0)
    await put(engine, log, 'b', 'b1', 0)
    await engine.logs.append(log, logged('keyless'))
    assert.equal(await put(engine, log, 'a', 'a2', first), 4)
  }),

  contractCase('compaction - of many who are first one is', async ({ engine, channel }) => {
    const log = channel('race')
    await engine.channels.create('events_store', log, { compacted: true })
    let last = 0
    for (let round = 0; round < 5; round += 1) {
      const outcomes = await Promise.all(
        Array.from({ length: 10 }, async (_, i) => {
          try {
            return await put(engine, log, 'a', `${round} ${i}`, last)
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
    assert.equal((await engine.logs.getLast(log, 'a'))?.sequence, last)
  }),

  contractCase('compaction - a tombstone takes a key’s place and is seen', async ({ engine, channel }) => {
    const log = channel('tombstone')
    await engine.channels.create('events_store', log, { compacted: true })
    await put(engine, log, 'a', 'a1')
    await put(engine, log, 'b', 'b1')
    const { sequence } = await engine.logs.append(log, logged('', { key: 'a', tombstone: true }))
    assert.equal(sequence, 3)
    const last = await engine.logs.getLast(log, 'a')
    assert.deepEqual([last?.sequence, last?.tombstone, last?.key], [3, true, 'a'])
    await eventually(async () => {
      const entries = await engine.logs.read(log, { maxMessages: 10 })
      assert.deepEqual(
        entries.map((entry) => [entry.sequence, entry.tombstone]),
        [
          [2, undefined],
          [3, true],
        ],
      )
    })
  }),

  contractCase('compaction - a tombstone is the last entry that an append must expect', async ({ engine, channel }) => {
    const log = channel('tombstone-expected')
    await engine.channels.create('events_store', log, { compacted: true })
    const first = await put(engine, log, 'a', 'a1', 0)
    const { sequence } = await engine.logs.append(
      log,
      logged('', { key: 'a', tombstone: true, expectLastOfKey: first }),
    )
    await rejectsWith('CONFLICT', put(engine, log, 'a', 'a2', 0))
    await rejectsWith('CONFLICT', put(engine, log, 'a', 'a2', first))
    assert.equal(await put(engine, log, 'a', 'a2', sequence), 3)
    assert.equal((await engine.logs.getLast(log, 'a'))?.tombstone, undefined)
  }),

  contractCase(
    'C5 - compaction: a retry with the same id is a duplicate, not a conflict',
    async ({ engine, channel }) => {
      const log = channel('retry')
      await engine.channels.create('events_store', log, { compacted: true })
      const more = { key: 'a', expectLastOfKey: 0, deduplicationId: 'once' }
      const first = await engine.logs.append(log, logged('a1', more))
      const again = await engine.logs.append(log, logged('a1', more))
      assert.deepEqual([first.duplicate, again.duplicate, again.sequence], [false, true, first.sequence])
    },
  ),

  contractCase('compaction - a follower sees the last of each key, then every change', async ({ engine, channel }) => {
    const log = channel('follow')
    await engine.channels.create('events_store', log, { compacted: true })
    for (const [key, body] of [
      ['a', 'a1'],
      ['b', 'b1'],
      ['a', 'a2'],
    ] as const) {
      await put(engine, log, key, body)
    }
    await eventually(async () => assert.equal((await all(engine, log)).length, 2))
    const { inbox } = await follow(engine, log, { from: 'first' })
    assert.deepEqual(texts(await inbox.take(2)), ['b1', 'a2'])
    await put(engine, log, 'b', 'b2')
    await inbox.take(3)
    await engine.logs.append(log, logged('', { key: 'a', tombstone: true }))
    const [, , change, deletion] = await inbox.take(4)
    assert.deepEqual([change?.key, change && text(change), change?.sequence], ['b', 'b2', 4])
    assert.deepEqual([deletion?.key, deletion?.tombstone, deletion?.sequence], ['a', true, 5])
  }),

  contractCase('compaction - two who follow while keys change agree in the end', async ({ engine, channel }) => {
    const log = channel('agree')
    await engine.channels.create('events_store', log, { compacted: true })
    const views = await Promise.all(
      [1, 2].map(async () => {
        const view = new Map<string, number>()
        let previous = 0
        await engine.logs.subscribe(log, { from: 'first' }, {}, (entry) => {
          assert.ok(entry.sequence > previous, 'sequences only grow')
          previous = entry.sequence
          view.set(entry.key ?? '', entry.sequence)
        })
        return view
      }),
    )
    const keys = ['a', 'b', 'c', 'd', 'e']
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(keys.map((key) => put(engine, log, key, `${round}`)))
    }
    const entries = await engine.logs.read(log, { maxMessages: 1_000 })
    const expected = new Map(entries.map(({ key = '', sequence }) => [key, sequence]))
    assert.equal(expected.size, keys.length)
    for (const view of views) {
      await eventually(() => assert.deepEqual(view, expected))
    }
  }),

  isolatedCase('compaction - keys, sequences and tombstones are kept over a restart', async (context) => {
    const log = context.channel('restart')
    await context.engine.channels.create('events_store', log, { compacted: true })
    await put(context.engine, log, 'a', 'a1')
    await put(context.engine, log, 'a', 'a2')
    await put(context.engine, log, 'b', 'b1')
    await context.engine.logs.append(log, logged('', { key: 'b', tombstone: true }))
    await context.restart()
    const { engine } = context
    assert.equal((await engine.logs.getLast(log, 'a'))?.sequence, 2)
    assert.equal((await engine.logs.getLast(log, 'b'))?.tombstone, true)
    await rejectsWith('CONFLICT', put(engine, log, 'a', 'x', 0))
    assert.equal(await put(engine, log, 'a', 'a3', 2), 5)
    await eventually(async () => assert.equal((await all(engine, log)).length, 2))
  }),
]
