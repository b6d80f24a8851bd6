import { DEDUPLICATION_MS, KEPT_UNTIL, UNTIL_DIGITS } from '@signalbox/broker-core/engine'
import Database from 'better-sqlite3'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { SCHEMA } from '../src/store/schema.ts'
import { ChannelTable } from '../src/writer/channel-table.ts'
import type { FirstSend } from '../src/writer/recent-sends.ts'
import { RecentSends } from '../src/writer/recent-sends.ts'
import { RowIndex } from '../src/writer/row-index.ts'
import { Folder } from './support/store.ts'

const SEED = { seed: 7, numRuns: 150 }

test('row index - finds each live row by its id like a map, also if many ids share a hash', () => {
  const step = fc.record({
    adds: fc.nat(2_000),
    ids: fc.constantFrom(3, 300, 30_000),
    deletes: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  const hashes = fc.constantFrom(40, 5_000, 2 ** 52)
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), hashes, fc.nat(), (steps, differentHashes, start) => {
      const index = new RowIndex()
      const idOf: number[] = [-1]
      const rowOf = new Map<number, number>()
      const hash = (id: number): number => ((id + 1) * 0x1_0000_00d3) % differentHashes
      const isSame = (id: number) => (row: number) => idOf[row] === id
      let first = 1
      for (const { adds, ids, deletes } of steps) {
        for (let n = 0; n < adds; n++) {
          const id = (start + n * 7_919) % ids
          const row = idOf.push(id) - 1
          index.add(hash(id), row, isSame(id))
          rowOf.set(id, row)
        }
        first += Math.floor((idOf.length - first) * deletes)
        index.deleteBelow(first, idOf.length - first)
        for (const [id, row] of rowOf) expect(index.find(hash(id), isSame(id))).toBe(row >= first ? row : 0)
      }
      expect(index.find(hash(-5), isSame(-5))).toBe(0)
    }),
    { ...SEED, numRuns: 25 },
  )
}, 60_000)

type Step =
  | { readonly kind: 'sends'; readonly ids: readonly number[]; readonly commits: boolean }
  | { readonly kind: 'time'; readonly ms: number }
  | { readonly kind: 'sweep'; readonly limit: number; readonly commits: boolean }
  | { readonly kind: 'reopen' }

const STEP: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('sends'), ids: fc.array(fc.nat(30)), commits: mostly() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('time'), ms: fc.integer({ min: -5_000, max: 90_000 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('sweep'), limit: fc.constantFrom(3, 1_000), commits: mostly() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen') }) },
)

function mostly(): fc.Arbitrary<boolean> {
  return fc.constantFrom(true, true, true, false)
}

const START = 1_000_000_000
const KEPT_TO = START + 300_000
const channelOf = (id: number): number => 1 + (id % 2)
const textOf = (id: number): string =>
  id % 5 === 0 ? `${KEPT_UNTIL}${String(KEPT_TO).padStart(UNTIL_DIGITS, '0')} ${id}` : `client ${id}`

/** @param longer The channels with a window of ten minutes */
function isHeld(id: number, { timestamp }: FirstSend, now: number, longer: readonly number[]): boolean {
  const window = longer.includes(channelOf(id)) ? 600_000 : DEDUPLICATION_MS
  return Math.abs(now - timestamp) < window || (id % 5 === 0 && KEPT_TO > now)
}

test('C5 - recent sends - each id that is to be recognized is found, over rollbacks, sweeps and restarts', async () => {
  await using folder = await Folder.make()
  const database = new Database(folder.file('ids.db'))
  database.pragma('synchronous = OFF')
  database.exec(SCHEMA)
  const channels = new ChannelTable(database)
  expect(['one', 'two'].map((name) => channels.editOrCreate('queues', name).id)).toEqual([1, 2])
  // Few hashes, so that most ids share one.
  const open = (): RecentSends => {
    const sends = new RecentSends(database, (channel, id) => (id.length + channel) % 3)
    sends.load()
    return sends
  }
  const kept = database.prepare<[number, string], FirstSend>(
    'SELECT sequence, id, timestamp FROM deduplication WHERE channel = ? AND deduplication_id = ?',
  )
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 40, size: 'max' }), fc.constantFrom([], [2]), (steps, longer) => {
      database.exec('DELETE FROM recent_sends; DELETE FROM deduplication')
      let now = START
      let sends = open()
      let sequence = 0
      let last = new Map<number, FirstSend>()
      for (const step of steps) {
        if (step.kind === 'reopen') sends = open()
        else if (step.kind === 'time') now += step.ms
        else {
          const before = new Map(last)
          database.exec('BEGIN')
          if (step.kind === 'sweep') sends.deleteOld(now, step.limit, JSON.stringify(longer))
          else {
            for (const id of step.ids) {
              const held = last.get(id)
              if (held && isHeld(id, held, now, longer)) continue
              const send = { sequence: ++sequence, id: `m${sequence}`, timestamp: now }
              sends.add(channelOf(id), textOf(id), send)
              last.set(id, send)
            }
            if (step.commits) sends.flush()
          }
          if (!step.commits) {
            sends.discard()
            last = before
          }
          database.exec(step.commits ? 'COMMIT' : 'ROLLBACK')
        }
        for (const [id, send] of last) {
          const found = sends.find(channelOf(id), textOf(id)) ?? kept.get(channelOf(id), textOf(id))
          expect(found ?? (isHeld(id, send, now, longer) ? undefined : send)).toMatchObject(send)
        }
      }
      // After two more minutes only the ids that are kept longer remain.
      now += 2 * DEDUPLICATION_MS
      while (sends.deleteOld(now, 4, JSON.stringify(longer)));
      sends.deleteOld(now, 4, JSON.stringify(longer))
      expect(database.prepare('SELECT count(*) FROM recent_sends').pluck().get()).toBe(0)
    }),
    SEED,
  )
  database.close()
}, 120_000)

test('C5 - recent sends - the table of an older store is made again if its transaction is rolled back', async () => {
  await using folder = await Folder.make()
  const database = new Database(folder.file('ids.db'))
  database.exec(`${SCHEMA} DROP TABLE recent_sends`)
  const sends = new RecentSends(database)
  expect(sends.load()).toBe(0)
  const send = { sequence: 1, id: 'm1', timestamp: START }
  for (const end of ['ROLLBACK', 'COMMIT']) {
    database.exec('BEGIN')
    sends.add(1, 'a', send)
    sends.flush()
    if (end === 'ROLLBACK') sends.discard()
    database.exec(end)
    expect(sends.find(1, 'a')?.id).toBe(end === 'COMMIT' ? 'm1' : undefined)
  }
  database.close()
})
