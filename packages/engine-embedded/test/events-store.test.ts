import type { StoredEvent } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { eventually } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { ALICE, openBroker, text } from './broker-fixture.ts'
import { Folder, storedEvent } from './support/store.ts'

/** More than the entries that stay in memory. */
const COUNT = 400

test('events stores - subscribers that catch up together share what they read, and each gets every entry', async () => {
  const { broker } = await openBroker()
  const { eventsStore } = broker.as(ALICE)
  await Promise.all(Array.from({ length: COUNT }, (_, i) => eventsStore.publish('s', text(`${i}`))))
  const follow = async (sequence: number, slow: boolean): Promise<readonly StoredEvent[]> => {
    const seen: StoredEvent[] = []
    const { promise: complete, resolve } = Promise.withResolvers<void>()
    await eventsStore.subscribe('s', { from: 'sequence', sequence }, {}, (event) => {
      seen.push(event)
      if (event.sequence === COUNT) resolve()
      return slow ? new Promise<void>((done) => setImmediate(done)) : undefined
    })
    await complete
    return seen
  }
  const starts = [1, 1, 10, 70, 130]
  const all = await Promise.all(starts.map((start, i) => follow(start, i % 2 === 1)))
  for (const [i, seen] of all.entries()) {
    const start = starts[i] ?? 0
    expect(seen.map(({ sequence }) => sequence)).toEqual(Array.from({ length: COUNT + 1 - start }, (_, n) => n + start))
  }
  expect(all[1]?.[0]).toBe(all[0]?.[0])
})

test('events stores - a channel that is deleted and filled again is not read from shared pages', async () => {
  const { broker } = await openBroker()
  const { eventsStore, channels } = broker.as(ALICE)
  const fill = (prefix: string): Promise<unknown> =>
    Promise.all(Array.from({ length: COUNT }, (_, i) => eventsStore.publish('s', text(`${prefix}${i}`))))
  const firstBodies = async (): Promise<ReadonlySet<string | undefined>> => {
    const bodies = new Set<string | undefined>()
    for (let i = 0; i < 2; i++) {
      const { promise, resolve } = Promise.withResolvers<StoredEvent>()
      await eventsStore.subscribe('s', { from: 'first' }, {}, (event) => resolve(event))
      bodies.add(new TextDecoder().decode((await promise).body))
    }
    return bodies
  }
  await fill('old')
  expect(await firstBodies()).toEqual(new Set(['old0']))
  await channels.delete('events_store', 's')
  await fill('new')
  expect(await firstBodies()).toEqual(new Set(['new0']))
})

test('events stores - a listener that waits for some entries and not for others gets all of them', async () => {
  const { broker } = await openBroker()
  const { eventsStore } = broker.as(ALICE)
  const seen: number[] = []
  const { promise: complete, resolve } = Promise.withResolvers<void>()
  await eventsStore.subscribe('s', { from: 'first' }, {}, ({ sequence }) => {
    seen.push(sequence)
    if (sequence === 60) resolve()
    return sequence % 3 === 0 ? new Promise<void>((done) => setImmediate(done)) : undefined
  })
  await Promise.all(Array.from({ length: 60 }, (_, i) => eventsStore.publish('s', text(`${i}`))))
  await complete
  expect(seen).toEqual(Array.from({ length: 60 }, (_, i) => i + 1))
})

test('events store - a key that is written all the time always has a last entry', async () => {
  await using folder = await Folder.make()
  await using engine = await openEmbeddedEngine({ path: folder.path })
  const { eventsStore } = engine
  await engine.channels.create('events_store', 'tasks', { compacted: true })
  await eventsStore.append('tasks', { ...storedEvent('first'), key: 'one' })
  let missing = 0
  let reads = 0
  for (let written = 0; written < 60; written++) {
    const state = { written: false }
    const write = eventsStore
      .append('tasks', { ...storedEvent(`${written}`), key: 'one' })
      .then(() => (state.written = true))
    // The writer thread commits between two of these reads, or within one.
    while (!state.written) {
      for (let i = 0; i < 50; i++) {
        reads++
        if ((await eventsStore.getLast('tasks', 'one')) === undefined) missing++
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    await write
  }
  expect(reads).toBeGreaterThan(60)
  expect(missing).toBe(0)
})

const HOUR = 3_600_000

test('compacted log - a tombstone is removed with its key after an hour', async () => {
  await using folder = await Folder.make()
  let now = 1_800_000_000_000
  await using engine = await folder.open({ now: () => now })
  await engine.channels.create('events_store', 'log', { compacted: true })
  await engine.eventsStore.append('log', storedEvent('kept', { key: 'a' }))
  await engine.eventsStore.append('log', storedEvent('first', { key: 'b' }))
  const { sequence } = await engine.eventsStore.append('log', storedEvent('', { key: 'b', tombstone: true }))
  now += HOUR - 1_000
  // A sweep comes every second; what it does to a tombstone of its own shows that it has been here.
  await engine.eventsStore.append('log', storedEvent('', { key: 'c', tombstone: true }))
  expect(await engine.eventsStore.getLast('log', 'b')).toMatchObject({ sequence, tombstone: true })
  now += 1_000
  await eventually(async () => expect(await engine.eventsStore.getLast('log', 'b')).toBeUndefined())
  expect(await engine.eventsStore.getLast('log', 'c')).toMatchObject({ tombstone: true })
  expect((await engine.eventsStore.read('log', { maxMessages: 10 })).map((event) => event.key)).toEqual(['a', 'c'])
  const back = await engine.eventsStore.append('log', storedEvent('back', { key: 'b', expectLastOfKey: 0 }))
  expect(back.sequence).toBe(sequence + 2)
})

test('compacted log - an existing log is compacted when its options ask for it', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  for (let i = 0; i < 700; i++) await engine.eventsStore.append('log', storedEvent(String(i), { key: `k${i % 3}` }))
  await engine.eventsStore.append('log', storedEvent('without a key'))
  expect(await engine.channels.create('events_store', 'log', { compacted: true })).toBe(false)
  const entries = await engine.eventsStore.read('log', { maxMessages: 1_000 })
  expect(entries.map(({ sequence }) => sequence)).toEqual([698, 699, 700, 701])
  const state = await engine.channels.info('events_store', 'log')
  expect(state?.eventsStore).toMatchObject({ firstSequence: 698, lastSequence: 701, entries: 4 })
})
