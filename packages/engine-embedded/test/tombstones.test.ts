import { expect, test } from 'vitest'
import { eventually } from '@signalbox/testkit/until'

import { Folder, storedEvent } from './support/store.ts'

const HOUR = 3_600_000

test('compacted log - a tombstone goes an hour later, and with it the key', async () => {
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
