import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'

import type { ContractCase } from './contract-case.ts'
import { contractCase, eventually, isolatedCase, pause } from './contract-case.ts'
import { follow } from './events-store-subscriptions.ts'
import { appendAll, assertBytes, assertTags, numbered, PRODUCER, storedEvent, texts } from './messages.ts'

function sequences(entries: readonly { readonly sequence: number }[]): number[] {
  return entries.map(({ sequence }) => sequence)
}

/** 20 bodies of 1 KiB, each beginning with its number. */
const KIBS = numbered(20).map((body) => body.padEnd(1024, '.'))

/** Cases for appending to and reading from an events store. */
export const eventsStoreCases: readonly ContractCase[] = [
  contractCase('events store - an entry is read as it was appended', async ({ engine, channel }) => {
    const store = channel('whole')
    const id = randomUUID()
    const body = Uint8Array.from({ length: 256 }, (_, i) => i)
    const tags = Object.fromEntries([
      ['__proto__', 'data'],
      ['', 'empty'],
      ['ключ', '🙂\n'],
    ])
    const before = Date.now()
    const result = await engine.eventsStore.append(store, storedEvent(body, { id, metadata: 'größe\u0000', tags }))
    assert.equal(result.id, id)
    assert.equal(result.sequence, 1)
    assert.equal(result.duplicate, false)
    assert.ok(Math.abs(result.timestamp - before) < 5_000)
    for (const [entry] of [
      await engine.eventsStore.read(store, { maxMessages: 1 }),
      await engine.eventsStore.readLatest(store, { maxMessages: 1 }),
    ]) {
      assert.ok(entry)
      assert.equal(entry.id, id)
      assert.equal(entry.channel, store)
      assert.equal(entry.clientId, PRODUCER)
      assertBytes(entry.body, body)
      assert.equal(entry.metadata, 'größe\u0000')
      assertTags(entry.tags, tags)
      assert.equal(entry.sequence, 1)
      assert.equal(entry.timestamp, result.timestamp)
      assert.equal(entry.key, undefined)
      assert.equal(entry.tombstone, undefined)
    }
  }),

  contractCase('events store - entries of 0 bytes and of 1 MiB are stored', async ({ engine, channel }) => {
    const store = channel('sizes')
    const large = new Uint8Array(Math.min(1024 * 1024, engine.limits.maxMessageBytes)).map((_, i) => i % 251)
    await engine.eventsStore.append(store, storedEvent(new Uint8Array(0)))
    await engine.eventsStore.append(store, storedEvent(large))
    const [first, second] = await engine.eventsStore.read(store, { maxMessages: 2 })
    assert.ok(first && second)
    assertBytes(first.body, new Uint8Array(0))
    assertBytes(second.body, large)
  }),

  contractCase('events store - sequences are 1, 2, 3 in each events store', async ({ engine, channel }) => {
    const [one, two] = [channel('one'), channel('two')]
    for (let sequence = 1; sequence <= 10; sequence += 1) {
      assert.equal((await engine.eventsStore.append(one, storedEvent('x'))).sequence, sequence)
    }
    assert.equal((await engine.eventsStore.append(two, storedEvent('x'))).sequence, 1)
    assert.equal((await engine.eventsStore.read(two, { maxMessages: 10 })).length, 1)
  }),

  contractCase(
    'events store - concurrent appends cause no gap, no repeat and no earlier time',
    async ({ engine, channel }) => {
      const store = channel('concurrent')
      const results = await Promise.all(
        numbered(100).map(async (body) => {
          const { sequence, timestamp } = await engine.eventsStore.append(store, storedEvent(body))
          return { body, sequence, timestamp }
        }),
      )
      results.sort((a, b) => a.sequence - b.sequence)
      const entries = await engine.eventsStore.read(store, { maxMessages: 200 })
      assert.deepEqual(
        entries.map(({ sequence }) => sequence),
        results.map((_, i) => i + 1),
      )
      assert.deepEqual(
        texts(entries),
        results.map(({ body }) => body),
      )
      for (const [i, result] of results.entries()) {
        assert.ok(result.timestamp >= (results[i - 1]?.timestamp ?? 0), 'timestamps never go back')
        assert.equal(entries[i]?.timestamp, result.timestamp)
      }
    },
  ),

  contractCase('M9 - events store: a read without a start begins with the first entry', async ({ engine, channel }) => {
    const store = channel('first')
    await appendAll(engine, store, numbered(5))
    assert.deepEqual(texts(await engine.eventsStore.read(store, { maxMessages: 3 })), numbered(3))
    assert.deepEqual(texts(await engine.eventsStore.read(store, { maxMessages: 100 })), numbered(5))
  }),

  contractCase('events store - a read from a sequence starts there', async ({ engine, channel }) => {
    const store = channel('sequence')
    await appendAll(engine, store, numbered(5))
    const read = async (fromSequence: number, maxMessages = 100) =>
      texts(await engine.eventsStore.read(store, { fromSequence, maxMessages }))
    assert.deepEqual(await read(1), numbered(5))
    assert.deepEqual(await read(3), ['m3', 'm4', 'm5'])
    assert.deepEqual(await read(3, 2), ['m3', 'm4'])
    assert.deepEqual(await read(5), ['m5'])
    assert.deepEqual(await read(6), [])
    assert.deepEqual(await read(Number.MAX_SAFE_INTEGER), [])
  }),

  contractCase('M9 - events store: a read from a time includes that time', async ({ engine, channel }) => {
    const store = channel('time')
    const stamps: number[] = []
    for (const body of numbered(3)) {
      stamps.push((await engine.eventsStore.append(store, storedEvent(body))).timestamp)
      await pause(20)
    }
    const [first, second, third] = stamps
    assert.ok(first && second && third && first < second && second < third)
    const read = async (fromTimestamp: number) =>
      texts(await engine.eventsStore.read(store, { fromTimestamp, maxMessages: 100 }))
    assert.deepEqual(await read(second), ['m2', 'm3'])
    assert.deepEqual(await read(second + 1), ['m3'])
    assert.deepEqual(await read(second - 1), ['m2', 'm3'])
    assert.deepEqual(await read(first), numbered(3))
    assert.deepEqual(await read(0), numbered(3))
    assert.deepEqual(await read(third + 1), [])
    assert.deepEqual(await read(third + 1_000_000_000), [])
  }),

  contractCase('events store - entries of one millisecond are read together', async ({ engine, channel }) => {
    const store = channel('same-time')
    const results = await Promise.all(numbered(40).map((body) => engine.eventsStore.append(store, storedEvent(body))))
    const times = new Set(results.map(({ timestamp }) => timestamp))
    // Each read takes a while if the times are many.
    for (const timestamp of [...times].filter((_, at) => at % 8 === 0)) {
      const entries = await engine.eventsStore.read(store, { fromTimestamp: timestamp, maxMessages: 100 })
      const expected = results.filter((other) => other.timestamp >= timestamp).length
      assert.equal(entries.length, expected)
    }
  }),

  contractCase('events store - a long events store can be read page by page', async ({ engine, channel }) => {
    const store = channel('pages')
    const total = 250
    await Promise.all(numbered(total).map((body) => engine.eventsStore.append(store, storedEvent(body))))
    const sequences: number[] = []
    for (;;) {
      const page = await engine.eventsStore.read(store, { fromSequence: sequences.length + 1, maxMessages: 60 })
      if (page.length === 0) break
      assert.ok(page.length <= 60)
      sequences.push(...page.map(({ sequence }) => sequence))
    }
    assert.deepEqual(
      sequences,
      Array.from({ length: total }, (_, i) => i + 1),
    )
  }),

  contractCase('events store - the latest entries come newest first', async ({ engine, channel }) => {
    const store = channel('latest')
    await appendAll(engine, store, numbered(5))
    const latest = async (maxMessages: number) => texts(await engine.eventsStore.readLatest(store, { maxMessages }))
    assert.deepEqual(await latest(1), ['m5'])
    assert.deepEqual(await latest(3), ['m5', 'm4', 'm3'])
    assert.deepEqual(await latest(100), ['m5', 'm4', 'm3', 'm2', 'm1'])
  }),

  contractCase(
    'events store - maxBytes limits a result, but one entry is always returned',
    async ({ engine, channel }) => {
      const store = channel('max-bytes')
      await appendAll(
        engine,
        store,
        numbered(5).map((body) => body.padEnd(1_000, '.')),
      )
      assert.deepEqual(sequences(await engine.eventsStore.read(store, { maxMessages: 5, maxBytes: 1 })), [1])
      assert.deepEqual(sequences(await engine.eventsStore.readLatest(store, { maxMessages: 5, maxBytes: 1 })), [5])
      assert.deepEqual(
        sequences(await engine.eventsStore.read(store, { maxMessages: 5, maxBytes: 1_000_000 })),
        [1, 2, 3, 4, 5],
      )
      const some = sequences(await engine.eventsStore.read(store, { maxMessages: 5, maxBytes: 2_500 }))
      assert.ok(some.length === 2 || some.length === 3, `about 2,500 bytes, not ${some.length} entries`)
      const newest = sequences(await engine.eventsStore.readLatest(store, { maxMessages: 5, maxBytes: 2_500 }))
      assert.ok(newest.length === 2 || newest.length === 3, `about 2,500 bytes, not ${newest.length} entries`)
      assert.equal(newest[0], 5)
    },
  ),

  contractCase('events store - sizeOf replaces the size of an entry', async ({ engine, channel }) => {
    const store = channel('size-of')
    await appendAll(engine, store, numbered(5))
    let more = 0
    const limit = { maxBytes: 250, sizeOf: () => 100, onMore: () => (more += 1) }
    assert.deepEqual(sequences(await engine.eventsStore.read(store, { maxMessages: 5, ...limit })), [1, 2])
    assert.deepEqual(sequences(await engine.eventsStore.readLatest(store, { maxMessages: 5, ...limit })), [5, 4])
    assert.equal(more, 2)
    assert.deepEqual(
      sequences(await engine.eventsStore.read(store, { fromSequence: 4, maxMessages: 5, ...limit })),
      [4, 5],
    )
    assert.equal(more, 2)
  }),

  contractCase('events store - maxBytes counts metadata and tags as well', async ({ engine, channel }) => {
    const store = channel('max-bytes-all')
    await engine.eventsStore.append(store, storedEvent('m1', { metadata: 'x'.repeat(2_000) }))
    await engine.eventsStore.append(store, storedEvent('m2', { tags: { large: 'x'.repeat(2_000) } }))
    assert.deepEqual(sequences(await engine.eventsStore.read(store, { maxMessages: 2, maxBytes: 2_500 })), [1])
    assert.deepEqual(sequences(await engine.eventsStore.readLatest(store, { maxMessages: 2, maxBytes: 2_500 })), [2])
  }),

  contractCase(
    'events store - reading an events store that does not exist returns no entries',
    async ({ engine, channel }) => {
      const store = channel('missing')
      assert.deepEqual(await engine.eventsStore.read(store, { maxMessages: 10 }), [])
      assert.deepEqual(await engine.eventsStore.read(store, { maxMessages: 10, fromSequence: 5 }), [])
      assert.deepEqual(await engine.eventsStore.read(store, { maxMessages: 10, fromTimestamp: Date.now() - 1_000 }), [])
      assert.deepEqual(await engine.eventsStore.readLatest(store, { maxMessages: 10 }), [])
      assert.equal(await engine.eventsStore.getLast(store, 'key'), undefined)
      assert.equal(await engine.channels.info('events_store', store), undefined)
    },
  ),

  contractCase('events store - reading an empty events store returns no entries', async ({ engine, channel }) => {
    const store = channel('empty')
    await engine.channels.create('events_store', store)
    assert.deepEqual(await engine.eventsStore.read(store, { maxMessages: 10 }), [])
    assert.deepEqual(await engine.eventsStore.readLatest(store, { maxMessages: 10 }), [])
    assert.equal(await engine.eventsStore.getLast(store, 'key'), undefined)
  }),

  // ── The retention of events stores ──

  contractCase(
    'events store - entries over the store’s maximum age are removed, newer ones remain',
    async ({ engine, channel }) => {
      const store = channel('age')
      await engine.channels.create('events_store', store, { maxAgeMs: 2_000 })
      await appendAll(engine, store, ['old', 'older'])
      let last = 2
      await eventually(async () => {
        const { sequence } = await engine.eventsStore.append(store, storedEvent('new'))
        assert.equal(sequence, last + 1)
        last = sequence
        const entries = await engine.eventsStore.read(store, { maxMessages: 1_000 })
        assert.equal(entries.at(-1)?.sequence, last, 'new entries remain')
        assert.ok(!texts(entries).includes('old'), 'old entries are removed')
      })
      await eventually(async () => {
        assert.deepEqual(await engine.eventsStore.read(store, { maxMessages: 10 }), [])
      })
      assert.equal(
        (await engine.eventsStore.append(store, storedEvent('next'))).sequence,
        last + 1,
        'sequences continue',
      )
      const [entry] = await engine.eventsStore.readLatest(store, { maxMessages: 10 })
      assert.equal(entry?.sequence, last + 1)
    },
  ),

  isolatedCase(
    'events store - the engine’s maximum age applies to stores without their own',
    async ({ engine, channel }) => {
      const [store, kept] = [channel('engine-age'), channel('kept')]
      await engine.channels.create('events_store', kept, { maxAgeMs: 0 })
      await appendAll(engine, store, ['x'])
      await appendAll(engine, kept, ['x'])
      await eventually(async () => {
        assert.deepEqual(await engine.eventsStore.read(store, { maxMessages: 10 }), [])
      })
      assert.equal((await engine.eventsStore.read(kept, { maxMessages: 10 })).length, 1)
    },
    { eventsStoreMaxAgeMs: 400 },
  ),

  contractCase(
    'events store - beyond the store’s maximum bytes the oldest entries are removed',
    async ({ engine, channel }) => {
      const store = channel('bytes')
      await engine.channels.create('events_store', store, { maxBytes: 10 * 1024 })
      await appendAll(engine, store, KIBS)
      await eventually(async () => {
        const state = (await engine.channels.info('events_store', store))?.eventsStore
        assert.ok(state)
        assert.ok(state.bytes <= 10 * 1024, `${state.bytes} bytes are stored`)
      })
      const entries = await engine.eventsStore.read(store, { maxMessages: 100 })
      assert.ok(entries.length >= 4 && entries.length <= 10, `${entries.length} entries are stored`)
      assert.deepEqual(
        entries.map(({ sequence }) => sequence),
        Array.from({ length: entries.length }, (_, i) => 21 - entries.length + i),
      )
      const state = (await engine.channels.info('events_store', store))?.eventsStore
      assert.deepEqual(
        [state?.firstSequence, state?.lastSequence, state?.entries],
        [21 - entries.length, 20, entries.length],
      )
    },
  ),

  isolatedCase(
    'events store - the engine’s maximum bytes apply to stores without their own',
    async ({ engine, channel }) => {
      const [store, kept] = [channel('engine-bytes'), channel('kept')]
      await engine.channels.create('events_store', kept, { maxBytes: 0 })
      await appendAll(engine, store, KIBS)
      await appendAll(engine, kept, KIBS)
      await eventually(async () => {
        assert.ok((await engine.eventsStore.read(store, { maxMessages: 100 })).length <= 10)
      })
      assert.equal((await engine.eventsStore.read(kept, { maxMessages: 100 })).length, 20)
    },
    { eventsStoreMaxBytes: 10 * 1024 },
  ),

  contractCase(
    'events store - a read or subscription from a removed entry starts with the first stored one',
    async ({ engine, channel }) => {
      const store = channel('gone')
      await engine.channels.create('events_store', store, { maxBytes: 10 * 1024 })
      await appendAll(engine, store, KIBS)
      await eventually(async () => {
        assert.ok((await engine.eventsStore.read(store, { maxMessages: 100 })).length <= 10)
      })
      const [first] = await engine.eventsStore.read(store, { maxMessages: 1 })
      assert.ok(first && first.sequence > 1)
      assert.equal(
        (await engine.eventsStore.read(store, { fromSequence: 1, maxMessages: 1 }))[0]?.sequence,
        first.sequence,
      )
      for (const start of [{ from: 'first' }, { from: 'sequence', sequence: 1 }] as const) {
        const { inbox } = await follow(engine, store, start)
        assert.equal((await inbox.take(1))[0]?.sequence, first.sequence)
      }
    },
  ),

  contractCase('events store - the options of an existing events store are updated', async ({ engine, channel }) => {
    const store = channel('options')
    await appendAll(engine, store, KIBS)
    assert.equal(await engine.channels.create('events_store', store, { maxBytes: 5 * 1024 }), false)
    await engine.eventsStore.append(store, storedEvent(KIBS[0] ?? ''))
    await eventually(async () => {
      const entries = await engine.eventsStore.read(store, { maxMessages: 100 })
      assert.ok(entries.length <= 5, `${entries.length} entries are stored`)
    })
    assert.equal(await engine.channels.create('events_store', store, { maxBytes: 0 }), false)
    await appendAll(engine, store, KIBS)
    assert.ok((await engine.eventsStore.read(store, { maxMessages: 100 })).length >= 20)
  }),

  isolatedCase('events store - retention survives a restart', async (context) => {
    const store = context.channel('restart')
    await context.engine.channels.create('events_store', store, { maxBytes: 10 * 1024 })
    await context.restart()
    const { engine } = context
    await appendAll(engine, store, KIBS)
    await eventually(async () => {
      assert.ok((await engine.eventsStore.read(store, { maxMessages: 100 })).length <= 10)
    })
  }),
]
