import assert from 'node:assert/strict'

import { contractCase, isolatedCase } from './contract-case.ts'
import type { ContractCase } from './contract-case.ts'
import { follow } from './events-store-subscriptions.ts'
import { appendAll, storedEvent, numbered, texts } from './messages.ts'
import { eventually } from './waiting.ts'

/** 20 bodies of 1 KiB, each beginning with its number. */
const KIBS = numbered(20).map((body) => body.padEnd(1024, '.'))

/** Cases for the retention of events stores. */
export const retentionCases: readonly ContractCase[] = [
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
