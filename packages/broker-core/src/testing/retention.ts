import assert from 'node:assert/strict'

import { contractCase, isolatedCase } from './contract-case.ts'
import type { ContractCase } from './contract-case.ts'
import { follow } from './log-subscriptions.ts'
import { appendAll, logged, numbered, texts } from './messages.ts'
import { eventually } from './waiting.ts'

/** 20 bodies of 1 KiB, each beginning with its place. */
const KIBS = numbered(20).map((body) => body.padEnd(1024, '.'))

/** What a log keeps. */
export const retentionCases: readonly ContractCase[] = [
  contractCase('logs - entries older than the log’s age go, newer ones stay', async ({ engine, channel }) => {
    const log = channel('age')
    await engine.channels.create('events_store', log, { maxAgeMs: 2_000 })
    await appendAll(engine, log, ['old', 'older'])
    let last = 2
    await eventually(async () => {
      const { sequence } = await engine.logs.append(log, logged('new'))
      assert.equal(sequence, last + 1)
      last = sequence
      const entries = await engine.logs.read(log, { maxMessages: 1_000 })
      assert.equal(entries.at(-1)?.sequence, last, 'what is new stays')
      assert.ok(!texts(entries).includes('old'), 'what is old goes')
    })
    await eventually(async () => {
      assert.deepEqual(await engine.logs.read(log, { maxMessages: 10 }), [])
    })
    assert.equal((await engine.logs.append(log, logged('next'))).sequence, last + 1, 'sequences go on')
    const [entry] = await engine.logs.readLatest(log, { maxMessages: 10 })
    assert.equal(entry?.sequence, last + 1)
  }),

  isolatedCase(
    'logs - the engine’s own age holds for logs that say nothing else',
    async ({ engine, channel }) => {
      const [log, kept] = [channel('engine-age'), channel('kept')]
      await engine.channels.create('events_store', kept, { maxAgeMs: 0 })
      await appendAll(engine, log, ['x'])
      await appendAll(engine, kept, ['x'])
      await eventually(async () => {
        assert.deepEqual(await engine.logs.read(log, { maxMessages: 10 }), [])
      })
      assert.equal((await engine.logs.read(kept, { maxMessages: 10 })).length, 1)
    },
    { logMaxAgeMs: 400 },
  ),

  contractCase('logs - past the log’s bytes the oldest entries go', async ({ engine, channel }) => {
    const log = channel('bytes')
    await engine.channels.create('events_store', log, { maxBytes: 10 * 1024 })
    await appendAll(engine, log, KIBS)
    await eventually(async () => {
      const state = (await engine.channels.info('events_store', log))?.log
      assert.ok(state)
      assert.ok(state.bytes <= 10 * 1024, `${state.bytes} bytes are kept`)
    })
    const entries = await engine.logs.read(log, { maxMessages: 100 })
    assert.ok(entries.length >= 4 && entries.length <= 10, `${entries.length} entries are kept`)
    assert.deepEqual(
      entries.map(({ sequence }) => sequence),
      Array.from({ length: entries.length }, (_, i) => 21 - entries.length + i),
    )
    const state = (await engine.channels.info('events_store', log))?.log
    assert.deepEqual(
      [state?.firstSequence, state?.lastSequence, state?.entries],
      [21 - entries.length, 20, entries.length],
    )
  }),

  isolatedCase(
    'logs - the engine’s own bytes hold for logs that say nothing else',
    async ({ engine, channel }) => {
      const [log, kept] = [channel('engine-bytes'), channel('kept')]
      await engine.channels.create('events_store', kept, { maxBytes: 0 })
      await appendAll(engine, log, KIBS)
      await appendAll(engine, kept, KIBS)
      await eventually(async () => {
        assert.ok((await engine.logs.read(log, { maxMessages: 100 })).length <= 10)
      })
      assert.equal((await engine.logs.read(kept, { maxMessages: 100 })).length, 20)
    },
    { logMaxBytes: 10 * 1024 },
  ),

  contractCase(
    'logs - a read or subscription from an entry that is gone begins with the first there is',
    async ({ engine, channel }) => {
      const log = channel('gone')
      await engine.channels.create('events_store', log, { maxBytes: 10 * 1024 })
      await appendAll(engine, log, KIBS)
      await eventually(async () => {
        assert.ok((await engine.logs.read(log, { maxMessages: 100 })).length <= 10)
      })
      const [first] = await engine.logs.read(log, { maxMessages: 1 })
      assert.ok(first && first.sequence > 1)
      assert.equal((await engine.logs.read(log, { fromSequence: 1, maxMessages: 1 }))[0]?.sequence, first.sequence)
      for (const start of [{ from: 'first' }, { from: 'sequence', sequence: 1 }] as const) {
        const { inbox } = await follow(engine, log, start)
        assert.equal((await inbox.take(1))[0]?.sequence, first.sequence)
      }
    },
  ),

  contractCase('logs - options of a log that exists are brought up to date', async ({ engine, channel }) => {
    const log = channel('options')
    await appendAll(engine, log, KIBS)
    assert.equal(await engine.channels.create('events_store', log, { maxBytes: 5 * 1024 }), false)
    await engine.logs.append(log, logged(KIBS[0] ?? ''))
    await eventually(async () => {
      const entries = await engine.logs.read(log, { maxMessages: 100 })
      assert.ok(entries.length <= 5, `${entries.length} entries are kept`)
    })
    assert.equal(await engine.channels.create('events_store', log, { maxBytes: 0 }), false)
    await appendAll(engine, log, KIBS)
    assert.ok((await engine.logs.read(log, { maxMessages: 100 })).length >= 20)
  }),

  isolatedCase('logs - retention is kept over a restart', async (context) => {
    const log = context.channel('restart')
    await context.engine.channels.create('events_store', log, { maxBytes: 10 * 1024 })
    await context.restart()
    const { engine } = context
    await appendAll(engine, log, KIBS)
    await eventually(async () => {
      assert.ok((await engine.logs.read(log, { maxMessages: 100 })).length <= 10)
    })
  }),
]
