import type { QueueMessage, StoredEvent } from '@signalbox/broker-core'
import type { EmbeddedEngine } from '@signalbox/engine-embedded'
import Database from 'better-sqlite3'
import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

import { CLIENT, Folder, queued, receive, storedEvent } from './support/store.ts'

type Value = string | number | null | { readonly base64: string } | { readonly fill: number; readonly length: number }

/** The tables of a store that version 0.1 wrote: the rows of {@link write}. */
interface WrittenStore {
  readonly schema: readonly string[]
  readonly tables: Readonly<Record<string, { readonly columns: readonly string[]; readonly rows: readonly Value[][] }>>
}

const WRITTEN: WrittenStore = JSON.parse(readFileSync(`${import.meta.dirname}/support/store-of-0.1.json`, 'utf8'))

const START = 1_750_000_000_000
const TAGS = Object.fromEntries([
  ['message_id', 'a'],
  ['__proto__', 'p'],
  ['', 'empty'],
  ['ä', 'ö'],
])
const FULL = {
  id: 'full',
  clientId: 'kitchen "2" ☕',
  metadata: 'table 4\n{}',
  tags: TAGS,
  body: new Uint8Array([0, 1, 2, 255, 128, 10]),
}
const BARE = { id: 'bare', clientId: '', metadata: '', tags: {}, body: new Uint8Array(0) }

/** Sends messages of all kinds. The second one moves to its dead-letter queue. */
async function write({ queues, eventsStore }: EmbeddedEngine, clock: { now: number }): Promise<void> {
  await queues.send('orders', queued('', BARE))
  await queues.send('orders', queued('', { ...FULL, maxReceiveCount: 1, deadLetterQueue: 'dead' }))
  clock.now += 1000
  const rules = { expirationMs: 1e13, deadLetterQueue: 'dead' }
  const expiring = { ...FULL, ...rules, id: 'expiring', maxReceiveCount: 3, deduplicationId: 'kitchen a' }
  await queues.send('orders', queued('', expiring))
  await queues.sendBatch('orders', [
    queued('', { ...FULL, ...rules, id: 'delayed', delayMs: 1e12, maxReceiveCount: 2 }),
    queued('', { ...BARE, id: 'batch' }),
  ])
  await queues.send('orders', queued('', { ...BARE, id: 'large', body: new Uint8Array(20_000).fill(7) }))
  const leased = await queues.receive('orders', { maxMessages: 2, waitMs: 0, leaseMs: 60_000, clientId: CLIENT })
  await queues.nack(
    leased.map(({ receipt }) => receipt),
    CLIENT,
  )
  await eventsStore.append('log', storedEvent('', BARE))
  await eventsStore.append('log', storedEvent('', { ...FULL, key: 'k"1', deduplicationId: 'kitchen a' }))
  clock.now += 1000
  const tombstone = { ...BARE, id: 'tombstone', key: 'k"1', tombstone: true, expectLastOfKey: 2 }
  await eventsStore.append('log', storedEvent('', tombstone))
}

function stored(value: unknown): Value {
  if (!(value instanceof Uint8Array)) return value as Value
  if (value.length > 1000) return { base64: '', fill: value[0] ?? 0, length: value.length }
  return { base64: Buffer.from(value).toString('base64') }
}

function valueOf(value: Value): unknown {
  if (typeof value !== 'object' || value === null) return value
  return 'fill' in value ? Buffer.alloc(value.length, value.fill) : Buffer.from(value.base64, 'base64')
}

test('stored rows - a store has the tables and rows of version 0.1', async () => {
  await using folder = await Folder.make()
  const clock = { now: START }
  const engine = await folder.open({ now: () => clock.now })
  await write(engine, clock)
  await engine.close()

  using database = closing(new Database(folder.file('signalbox.db'), { readonly: true }))
  const schema = database
    .prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name <> 'recent_sends'")
    .pluck()
    .all()
  expect(schema).toEqual(WRITTEN.schema)
  for (const [table, { columns, rows }] of Object.entries(WRITTEN.tables)) {
    // Version 0.1 had one table for all deduplication ids.
    const now = table === 'deduplication' ? 'recent_sends' : table
    const all = database
      .prepare<[], unknown[]>(`SELECT ${columns.join(', ')} FROM ${now}`)
      .raw()
      .all()
    // Version 0.1 kept the time of the send; now a dead letter has the time of its move.
    const expected = rows.map((row) => (JSON.stringify(row).includes('dlq_source') ? row.with(3, START + 1000) : row))
    expect(all.map((row) => row.map(stored))).toEqual(expected)
  }
})

test('stored rows - the messages and ids of a store of version 0.1 are read with all their fields', async () => {
  await using folder = await Folder.make()
  await (await folder.open()).close()
  {
    using database = closing(new Database(folder.file('signalbox.db')))
    for (const [table, { columns, rows }] of Object.entries(WRITTEN.tables)) {
      const insert = database.prepare(`INSERT INTO ${table} VALUES (${columns.map(() => '?').join(', ')})`)
      for (const row of rows) insert.run(...row.map(valueOf))
    }
    database.exec('DROP TABLE recent_sends')
  }
  const clock = { now: START + 2000 }
  await using engine = await folder.open({ now: () => clock.now })

  const repeated = { deduplicationId: 'kitchen a' }
  expect(await engine.queues.send('orders', queued('again', repeated))).toMatchObject({
    id: 'expiring',
    duplicate: true,
  })
  expect(await engine.eventsStore.append('log', storedEvent('again', repeated))).toMatchObject({ duplicate: true })

  const rules = { expiresAt: 0, maxReceiveCount: 0, deadLetterQueue: '' }
  const bare = { ...BARE, ...rules, channel: 'orders', receiveCount: 1 }
  const expiring = {
    ...FULL,
    id: 'expiring',
    channel: 'orders',
    timestamp: START + 1000,
    expiresAt: START + 1000 + 1e13,
    deadLetterQueue: 'dead',
  }
  const delayed = { ...expiring, id: 'delayed', sequence: 4, receiveCount: 1, maxReceiveCount: 2 }
  expect(messages(await receive(engine, 'orders'))).toEqual([
    { ...bare, timestamp: START, sequence: 1, receiveCount: 2 },
    { ...expiring, sequence: 3, receiveCount: 1, maxReceiveCount: 3 },
    { ...bare, id: 'batch', timestamp: START + 1000, sequence: 5 },
    { ...bare, id: 'large', timestamp: START + 1000, sequence: 6, body: new Uint8Array(20_000).fill(7) },
  ])
  const dlqTags = { dlq_source: 'orders', dlq_reason: 'max_receive_count', dlq_receive_count: '1' }
  const tags = Object.fromEntries([...Object.entries(TAGS), ...Object.entries(dlqTags)])
  expect(messages(await receive(engine, 'dead'))).toEqual([
    { ...FULL, ...rules, tags, channel: 'dead', timestamp: START, sequence: 1, receiveCount: 1 },
  ])
  clock.now = START + 1000 + 1e12
  expect(messages(await receive(engine, 'orders'))).toEqual([delayed])
  expect(await engine.eventsStore.read('log', { maxMessages: 10 })).toEqual([
    { ...BARE, channel: 'log', timestamp: START + 1000, sequence: 1 },
    { ...FULL, channel: 'log', timestamp: START + 1000, sequence: 2, key: 'k"1' },
    { ...BARE, id: 'tombstone', channel: 'log', timestamp: START + 2000, sequence: 3, key: 'k"1', tombstone: true },
  ] satisfies StoredEvent[])
})

function messages(deliveries: readonly { readonly message: QueueMessage }[]): QueueMessage[] {
  return deliveries.map(({ message }) => message)
}

function closing<T extends { close(): unknown }>(resource: T): T & Disposable {
  return Object.assign(resource, { [Symbol.dispose]: () => void resource.close() })
}
