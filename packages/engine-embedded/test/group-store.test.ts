import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'

import type { EmbeddedEngine } from '@signalbox/engine-embedded'
import { backupStore, openEmbeddedEngine, recoverStore } from '@signalbox/engine-embedded'

import { CLIENT, Folder, queued, receive, textsOf } from './support/store.ts'

const ORDERED = { mode: 'ordered', max_in_flight_per_group: 1 } as const

function setGroups(engine: EmbeddedEngine, ...queues: readonly string[]): void {
  engine.settings.replace(queues.map((match) => ({ type: 'queues', match, source: 'api', groups: ORDERED })))
}

async function folder(): Promise<Folder> {
  const made = await Folder.make()
  onTestFinished(() => made[Symbol.asyncDispose]())
  return made
}

async function open(at: Folder): Promise<EmbeddedEngine> {
  const engine = await at.open()
  onTestFinished(() => engine.close())
  return engine
}

/**
 * Returns the version in the header of the data file, which older programs read. Another process reads it: closing a
 * descriptor of the file in this one would release the locks of SQLite.
 */
function versionOf(at: Folder): number {
  return execFileSync('head', ['-c', '64', at.file('signalbox.db')]).readUInt32BE(60)
}

/** Returns the number of rows of groups in the store; undefined if it has no table for them. */
function rowsOf(at: Folder): number | undefined {
  const database = new Database(at.file('signalbox.db'), { readonly: true })
  try {
    const row: unknown = database.prepare('SELECT count(*) FROM queue_groups').pluck().get()
    return Number(row)
  } catch {
    return undefined
  } finally {
    database.close()
  }
}

/** Sends `count` messages of each group, the groups by turns. */
async function fill(engine: EmbeddedEngine, queue: string, groups: readonly string[], count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await engine.queues.sendBatch(
      queue,
      groups.map((group) => queued(`${group} ${i}`, { tags: { group } })),
    )
  }
}

function shown(deliveries: Parameters<typeof textsOf>[0]): string[] {
  return textsOf(deliveries).map(String)
}

/** Receives and acknowledges everything; returns the texts. */
async function drain(engine: EmbeddedEngine, queue: string): Promise<string[]> {
  const texts: string[] = []
  for (;;) {
    const deliveries = await receive(engine, queue, { waitMs: texts.length === 0 ? 10_000 : 0 })
    if (deliveries.length === 0) return texts
    texts.push(...shown(deliveries))
    await engine.queues.ack(
      deliveries.map(({ receipt }) => receipt),
      CLIENT,
    )
  }
}

test('groups - a store without groups keeps its version, and the first groups raise it at once', async () => {
  const at = await folder()
  const engine = await open(at)
  await engine.queues.send('q', queued('x'))
  engine.settings.replace([{ type: 'queues', match: 'other', source: 'api', groups: ORDERED }])
  await engine.queues.send('q', queued('y'))
  expect(versionOf(at)).toBe(1)
  setGroups(engine, 'q')
  expect(textsOf(await receive(engine, 'q', { waitMs: 10_000 }))).toEqual(['x', 'y'])
  expect(versionOf(at)).toBe(2)
})

test('groups - existing messages get their groups in steps, and those that come meanwhile too', async () => {
  const at = await folder()
  const engine = await open(at)
  await fill(engine, 'q', ['a', 'b'], 1)
  const many = Array.from({ length: 9_000 }, (_, i) => queued(`c ${i}`, { tags: { group: 'c' } }))
  await engine.queues.sendBatch('q', many)
  setGroups(engine, 'q')
  const sent = engine.queues.send('q', queued('a 1', { tags: { group: 'a' } }))
  const first = await receive(engine, 'q', { waitMs: 10_000 })
  await sent
  expect(shown(first).toSorted()).toEqual(['a 0', 'b 0', 'c 0'])
  expect(rowsOf(at)).toBe(9_003)
})

test('groups - indexing continues after a restart in the middle', async () => {
  const at = await folder()
  const before = await at.open()
  const many = Array.from({ length: 20_000 }, (_, i) => queued(`c ${i}`, { tags: { group: `${i % 3}` } }))
  await before.queues.sendBatch('q', many)
  setGroups(before, 'q')
  await vi.waitFor(() => expect(rowsOf(at)).toBeGreaterThan(0))
  await before.close()
  const engine = await open(at)
  setGroups(engine, 'q')
  const heads = await receive(engine, 'q', { waitMs: 10_000 })
  expect(shown(heads).toSorted()).toEqual(['c 0', 'c 1', 'c 2'])
  expect(rowsOf(at)).toBe(20_000)
})

test('groups - without settings the rows are removed, and messages come in the order of the sends', async () => {
  const at = await folder()
  const engine = await open(at)
  setGroups(engine, 'q')
  await fill(engine, 'q', ['b', 'a'], 3)
  await engine.queues.nack(
    (await receive(engine, 'q', { waitMs: 10_000 })).map(({ receipt }) => receipt),
    CLIENT,
  )
  expect(rowsOf(at)).toBe(6)
  setGroups(engine)
  await vi.waitFor(() => expect(rowsOf(at)).toBe(0))
  expect(await drain(engine, 'q')).toEqual(['b 0', 'a 0', 'b 1', 'a 1', 'b 2', 'a 2'])
  expect(versionOf(at)).toBe(2)
})

test('groups - every end of a message removes its row', async () => {
  const at = await folder()
  const engine = await open(at)
  setGroups(engine, 'q', 'dead')
  await fill(engine, 'q', ['a', 'b', 'c'], 2)
  await engine.queues.send('q', queued('e', { tags: { group: 'e' }, expirationMs: 50 }))
  await engine.queues.send(
    'q',
    queued('d', { tags: { group: 'd' }, delayMs: 20, maxReceiveCount: 1, deadLetterQueue: 'dead' }),
  )
  await vi.waitFor(async () => expect((await engine.channels.info('queues', 'q'))?.queue?.expired).toBe(1))
  const heads = await receive(engine, 'q', { waitMs: 10_000 })
  expect(shown(heads).toSorted()).toEqual(['a 0', 'b 0', 'c 0', 'd'])
  await engine.queues.nack(
    heads.map(({ receipt }) => receipt),
    CLIENT,
  )
  expect(textsOf(await receive(engine, 'dead', { waitMs: 10_000 }))).toEqual(['d'])
  expect(rowsOf(at)).toBe(7)
  expect((await drain(engine, 'q')).toSorted()).toEqual(['a 0', 'a 1', 'b 0', 'b 1', 'c 0', 'c 1'])
  await fill(engine, 'q', ['a'], 5)
  await engine.queues.purge('q')
  expect(rowsOf(at)).toBe(1)
  await engine.channels.delete('queues', 'dead')
  await vi.waitFor(() => expect(rowsOf(at)).toBe(0), 10_000)
})

test('groups - a queue that a pattern matches has groups from its first message on', async () => {
  const engine = await open(await folder())
  setGroups(engine, 'jobs.*')
  await fill(engine, 'jobs.one', ['a', 'b'], 2)
  expect(textsOf(await receive(engine, 'jobs.one', { waitMs: 10_000 }))).toEqual(['a 0', 'b 0'])
})

test('groups - messages that were leased before the settings count', async () => {
  const engine = await open(await folder())
  await fill(engine, 'q', ['a', 'b'], 2)
  const [leased] = await receive(engine, 'q', { maxMessages: 1 })
  setGroups(engine, 'q')
  expect(textsOf(await receive(engine, 'q', { waitMs: 10_000 }))).toEqual(['b 0'])
  const next = receive(engine, 'q', { waitMs: 10_000 })
  await engine.queues.ack([leased?.receipt ?? ''], CLIENT)
  expect(textsOf(await next)).toEqual(['a 1'])
})

test('groups - a backup has the groups, and a recovered store builds them again', async () => {
  const at = await folder()
  const engine = await open(at)
  setGroups(engine, 'q')
  await fill(engine, 'q', ['a', 'b'], 2)
  const target = await folder()
  backupStore(at.path, target.file('signalbox.db'))
  await engine.close()
  recoverStore(at.path, join(target.path, 'recovered'))
  expect(versionOf(target)).toBe(2)
  for (const path of [target.path, join(target.path, 'recovered')]) {
    const copy = await openEmbeddedEngine({ path })
    onTestFinished(() => copy.close())
    setGroups(copy, 'q')
    expect(textsOf(await receive(copy, 'q', { waitMs: 10_000 }))).toEqual(['a 0', 'b 0'])
  }
})

test('groups - a queue with 10,000 groups delivers each once in a circle', async () => {
  const at = await folder()
  const engine = await open(at)
  setGroups(engine, 'q')
  const groups = Array.from({ length: 10_000 }, (_, i) => `group ${i}`)
  await fill(engine, 'q', groups, 2)
  const heads: string[] = []
  while (heads.length < groups.length) {
    heads.push(...shown(await receive(engine, 'q', { maxMessages: 1_000, waitMs: 10_000 })))
  }
  expect(new Set(heads).size).toBe(10_000)
  expect(heads.every((text) => text.endsWith(' 0'))).toBe(true)
  // All groups wait for their heads now, also those that are not in memory.
  expect(await receive(engine, 'q')).toEqual([])
})
