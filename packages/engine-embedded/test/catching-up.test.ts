import type { StoredEvent } from '@signalbox/broker-core'
import { expect, test } from 'vitest'

import { ALICE, openBroker, text } from './broker-fixture.ts'

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
