import { expect, test } from 'vitest'
import { eventually } from '@signalbox/testkit/until'

import { Folder, logged } from './support/store.ts'

const HOUR = 3_600_000

test('compacted log - a tombstone goes an hour later, and with it the key', async () => {
  await using folder = await Folder.make()
  let now = 1_800_000_000_000
  await using engine = await folder.open({ now: () => now })
  await engine.channels.create('events_store', 'log', { compacted: true })
  await engine.logs.append('log', logged('kept', { key: 'a' }))
  await engine.logs.append('log', logged('first', { key: 'b' }))
  const { sequence } = await engine.logs.append('log', logged('', { key: 'b', tombstone: true }))
  now += HOUR - 1_000
  // A sweep comes every second; what it does to a tombstone of its own shows that it has been here.
  await engine.logs.append('log', logged('', { key: 'c', tombstone: true }))
  expect(await engine.logs.getLast('log', 'b')).toMatchObject({ sequence, tombstone: true })
  now += 1_000
  await eventually(async () => expect(await engine.logs.getLast('log', 'b')).toBeUndefined())
  expect(await engine.logs.getLast('log', 'c')).toMatchObject({ tombstone: true })
  expect((await engine.logs.read('log', { maxMessages: 10 })).map((event) => event.key)).toEqual(['a', 'c'])
  const back = await engine.logs.append('log', logged('back', { key: 'b', expectLastOfKey: 0 }))
  expect(back.sequence).toBe(sequence + 2)
})

test('compacted log - an existing log is compacted when its options ask for it', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  for (let i = 0; i < 700; i++) await engine.logs.append('log', logged(String(i), { key: `k${i % 3}` }))
  await engine.logs.append('log', logged('without a key'))
  expect(await engine.channels.create('events_store', 'log', { compacted: true })).toBe(false)
  const entries = await engine.logs.read('log', { maxMessages: 1_000 })
  expect(entries.map(({ sequence }) => sequence)).toEqual([698, 699, 700, 701])
  const state = await engine.channels.info('events_store', 'log')
  expect(state?.log).toMatchObject({ firstSequence: 698, lastSequence: 701, entries: 4 })
})
