import Database from 'better-sqlite3'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import type { CommitInfo, EmbeddedEngine, EmbeddedEngineProblem } from '@signalbox/engine-embedded'
import { backupStore, openEmbeddedEngine, recoverStore } from '@signalbox/engine-embedded'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { openEngine } from '../src/engine.ts'
import { ALICE, openBroker } from './broker-fixture.ts'
import { damage } from './support/damage.ts'
import { Folder, storedEvent } from './support/store.ts'

const CHILD = fileURLToPath(new URL('./support/group-child.ts', import.meta.url))
const DURABLE = { group: 'g', durable: true } as const

async function append(engine: EmbeddedEngine, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => engine.eventsStore.append('log', storedEvent('x'))))
}

/** Subscribes to the group, and returns the sequences that it gets. */
async function joinGroup(
  engine: EmbeddedEngine,
  group = 'g',
): Promise<{ sequences: number[]; close: () => Promise<void> }> {
  const sequences: number[] = []
  const options = { group, durable: true }
  const subscription = await engine.eventsStore.subscribe('log', { from: 'first' }, options, ({ sequence }) => {
    sequences.push(sequence)
  })
  return { sequences, close: () => subscription.close() }
}

/**
 * Runs a process that handles entries until it has printed so many lines and stored a position, and kills it. Returns
 * the last line.
 */
async function handleAndKill(path: string, lines: number): Promise<number> {
  const child = spawn(process.execPath, ['--conditions=@signalbox/source', CHILD, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let [last, count] = [0, 0]
  let began: number | undefined
  let enough = Infinity
  const reader = createInterface({ input: child.stdout })
  reader.on('line', (line) => {
    last = Math.max(last, Number(line))
    began ??= performance.now()
    count++
    // A position is stored each 100 ms, and in the commits of the next entries.
    if (enough === Infinity && count >= lines && performance.now() - began > 500) enough = count + 100
    if (count >= enough) child.kill('SIGKILL')
  })
  await once(reader, 'close')
  return last
}

test('durable groups - after kill -9 a group skips no entry, and repeats only recent ones', async () => {
  await using folder = await Folder.make()
  for (const lines of [300, 700]) {
    const handled = await handleAndKill(folder.path, lines)
    await using engine = await folder.open()
    const { sequences } = await joinGroup(engine)
    await append(engine, 1)
    await until(() => sequences.length > 0)
    expect(sequences[0]).toBeGreaterThan(1)
    expect(sequences[0]).toBeLessThanOrEqual(handled + 1)
  }
}, 120_000)

test('durable groups - the positions of many entries share a few commits', async () => {
  await using folder = await Folder.make()
  const commits: CommitInfo[] = []
  await using engine = await folder.open({ onCommit: (commit) => commits.push(commit) })
  await append(engine, 2_000)
  commits.length = 0
  const startedAt = performance.now()
  const groups = await Promise.all(Array.from({ length: 5 }, (_, i) => joinGroup(engine, `g${i}`)))
  await until(() => groups.every(({ sequences }) => sequences.length === 2_000))
  for (const { close } of groups) await close()
  const elapsedMs = performance.now() - startedAt
  // One for the subscriptions, one each 100 ms, one for the last positions, and those of the delivery counts.
  expect(commits.length).toBeLessThan(40 + elapsedMs / 50)
})

test('durable groups - subscribers that join and leave at the same time do not set the position back', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  await append(engine, 100)
  const all: number[] = []
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      const { sequences, close } = await joinGroup(engine)
      await new Promise((resolve) => setImmediate(resolve))
      await close()
      all.push(...sequences)
    }),
  )
  const { sequences } = await joinGroup(engine)
  await append(engine, 1)
  await until(() => sequences.at(-1) === 101)
  expect([...all, ...sequences].sort((a, b) => a - b)).toEqual(Array.from({ length: 101 }, (_, i) => i + 1))
})

test('durable groups - a store from before them gets their table with the first one', async () => {
  await using folder = await Folder.make()
  const first = await folder.open()
  await append(first, 3)
  await first.channels.create('events_store', 'other')
  await first.close()
  const database = new Database(folder.file('signalbox.db'))
  database.exec('DROP TABLE group_positions')
  database.close()
  {
    await using engine = await folder.open()
    expect(await engine.channels.delete('events_store', 'other')).toBe(true)
    const { sequences } = await joinGroup(engine)
    await until(() => sequences.length === 3)
  }
  await using engine = await folder.open()
  const { sequences } = await joinGroup(engine)
  await append(engine, 1)
  await until(() => sequences.length === 1)
  expect(sequences).toEqual([4])
})

test('durable groups - a backup and a recovered store have the positions', async () => {
  await using folder = await Folder.make()
  await using copies = await Folder.make()
  {
    await using engine = await folder.open()
    await append(engine, 3)
    const { sequences } = await joinGroup(engine)
    await until(() => sequences.length === 3)
  }
  await using target = await Folder.make()
  backupStore(folder.path, target.file('signalbox.db'))
  const { leftOut } = recoverStore(folder.path, join(copies.path, 'new'))
  expect(leftOut).toEqual([])
  for (const path of [target.path, join(copies.path, 'new')]) {
    await using engine = await openEmbeddedEngine({ path })
    const { sequences } = await joinGroup(engine)
    await append(engine, 1)
    await until(() => sequences.length === 1)
    expect(sequences).toEqual([4])
  }
})

test('durable groups - a position that could not be stored is stored when the store is open again', async () => {
  await using folder = await Folder.make()
  const faults = new Int32Array(new SharedArrayBuffer(4))
  {
    await using engine = await openEngine({ path: folder.path }, faults)
    await append(engine, 10)
    const { sequences } = await joinGroup(engine)
    Atomics.store(faults, 0, 2)
    await until(() => sequences.length === 10)
    await until(async () => !(await engine.health()).ok)
    Atomics.store(faults, 0, 0)
    await until(async () => (await engine.health()).ok)
    await append(engine, 1)
    await until(() => sequences.length === 11)
  }
  await using engine = await folder.open()
  const { sequences } = await joinGroup(engine)
  await append(engine, 1)
  await until(() => sequences.length === 1)
  expect(sequences).toEqual([12])
})

test('durable groups - unreadable positions are reported once, and affect durable groups only', async () => {
  await using folder = await Folder.make()
  await using target = await Folder.make()
  {
    await using engine = await folder.open()
    await append(engine, 3)
    await (await joinGroup(engine, 'in the damaged page')).close()
  }
  await damage(folder, 'in the damaged page')
  const problems: EmbeddedEngineProblem[] = []
  {
    await using engine = await folder.open({ onProblem: (problem) => problems.push(problem) })
    const damaged = { code: 'ENGINE_UNAVAILABLE', message: expect.stringContaining('positions of durable groups') }
    await expect(joinGroup(engine)).rejects.toMatchObject(damaged)
    await expect(joinGroup(engine)).rejects.toMatchObject(damaged)
    const seen: number[] = []
    const options = { group: 'g' }
    await engine.eventsStore.subscribe('log', { from: 'first' }, options, ({ sequence }) => void seen.push(sequence))
    await append(engine, 1)
    await until(() => seen.length === 4)
    await engine.channels.delete('events_store', 'log')
    await append(engine, 1)
    expect(await engine.eventsStore.read('log', { maxMessages: 10 })).toHaveLength(1)
  }
  expect(problems.filter(({ message }) => message.includes('positions of durable groups'))).toHaveLength(1)
  const { leftOut } = recoverStore(folder.path, join(target.path, 'new'))
  expect(leftOut).toEqual(['positions of durable groups: some could not be read'])
})

test('broker - durable needs a group, and an events store', async () => {
  const { broker } = await openBroker()
  const { commands, events, eventsStore } = broker.as(ALICE)
  const invalid = { code: 'ARGUMENT_INVALID', details: { argument: 'durable' } }
  await expect(eventsStore.subscribe('c', { from: 'new' }, { durable: true }, () => {})).rejects.toMatchObject(invalid)
  await expect(events.subscribe('c', DURABLE, () => {})).rejects.toMatchObject(invalid)
  await expect(commands.subscribe('c', DURABLE, () => ({}))).rejects.toMatchObject(invalid)
  const subscription = await eventsStore.subscribe('c', { from: 'new' }, DURABLE, () => {})
  await subscription.close()
})
