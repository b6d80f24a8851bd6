import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { expect, test } from 'vitest'

import { Folder, storedEvent } from './support/store.ts'

test('events store - a key that is written all the time always has a last entry', async () => {
  await using folder = await Folder.make()
  await using engine = await openEmbeddedEngine({ path: folder.path })
  const { eventsStore } = engine
  await engine.channels.create('events_store', 'tasks', { compacted: true })
  await eventsStore.append('tasks', { ...storedEvent('first'), key: 'one' })
  let missing = 0
  let reads = 0
  for (let written = 0; written < 300; written++) {
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
  expect(reads).toBeGreaterThan(300)
  expect(missing).toBe(0)
})
