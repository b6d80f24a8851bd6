import { cases } from '@signalbox/testkit/property-cases'
import { assert, asyncProperty, array, constantFrom, record } from 'fast-check'
import { expect, test } from 'vitest'

import { ChannelMap } from '../src/channel-map.ts'

const NAMES = ['a', 'b', 'B', 'a.b', 'é'] as const

const changes = array(record({ what: constantFrom('set', 'delete', 'clear', 'read'), name: constantFrom(...NAMES) }))

test('channel map - the list has the channels in order after each change', async () => {
  const property = asyncProperty(changes, async (all) => {
    const map = new ChannelMap<number>('events')
    for (const { what, name } of all) {
      if (what === 'set') map.set(name, 1)
      else if (what === 'delete') map.delete(name)
      else if (what === 'clear') map.clear()
      const names = (await map.ordered()).map(({ name: each }) => each)
      expect(names).toEqual([...map.keys()].toSorted())
    }
  })
  await assert(property, { seed: 1, numRuns: cases(200) })
})

test('channel map - callers share a list until a channel comes or goes', async () => {
  const map = new ChannelMap<number>('queues')
  map.set('b', 1).set('a', 1)
  const first = map.ordered()
  expect(await first).toEqual([
    { type: 'queues', name: 'a' },
    { type: 'queues', name: 'b' },
  ])
  map.set('a', 2)
  expect(map.ordered()).toBe(first)
  map.set('c', 1)
  expect(map.ordered()).not.toBe(first)
})

test('channel map - a channel that comes while the list is made is in the next one', async () => {
  const map = new ChannelMap<number>('queues')
  map.set('a', 1)
  const before = map.ordered()
  map.set('b', 1)
  expect((await map.ordered()).map(({ name }) => name)).toEqual(['a', 'b'])
  expect((await before).length).toBeLessThan(3)
})
