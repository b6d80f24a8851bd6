import { performance } from 'node:perf_hooks'

import Database from 'better-sqlite3'
import { expect, test } from 'vitest'

import { SCHEMA } from '../src/store/schema.ts'
import { RecentSends } from '../src/writer/recent-sends.ts'
import { Folder } from './support/store.ts'

const IDS = 1_000_000

const idOf = (n: number): string => `client-7 5f0c9ad2-6c1e-4a4e-9d11-${String(n).padStart(12, '0')}`

test('recent sends - a million ids need 34 MB, and are read again when the store is opened', async () => {
  await using folder = await Folder.make()
  const database = new Database(folder.file('ids.db'))
  database.pragma('page_size = 8192')
  database.exec(SCHEMA)
  const sends = new RecentSends(database)
  const add = (n: number): void => {
    const id = idOf(n).slice(9)
    sends.add(1, idOf(n), { sequence: n + 1, id, timestamp: 1_000_000 + Math.floor(n / 10) })
  }
  let longest = 0
  for (let n = 0; n < IDS;) {
    database.exec('BEGIN')
    for (const end = n + 1_000; n < end; n++) {
      const began = performance.now()
      add(n)
      longest = Math.max(longest, performance.now() - began)
    }
    sends.flush()
    database.exec('COMMIT')
  }
  const began = performance.now()
  const again = new RecentSends(database)
  again.load()
  const loaded = performance.now() - began
  for (let n = 0; n < IDS; n += 997) expect(again.find(1, idOf(n))?.sequence).toBe(n + 1)
  expect(again.find(2, idOf(0))).toBeUndefined()
  console.log(
    `${IDS} ids: index ${again.indexBytes / 2 ** 20} MiB, read in ${loaded.toFixed(0)} ms, slowest add ${longest.toFixed(0)} ms`,
  )
  expect(again.indexBytes).toBeLessThanOrEqual(64 * 2 ** 20)
  database.close()
})
