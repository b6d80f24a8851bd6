import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { channelMatcher } from '@signalbox/broker-core'
import type { EmbeddedEngine } from '@signalbox/engine-embedded'

import { Folder, logged } from './support/store.ts'

let folder: Folder
let engine: EmbeddedEngine

beforeAll(async () => {
  folder = await Folder.make()
  engine = await folder.open({ maxChannels: 0 })
})

afterAll(async () => {
  await engine.close()
  await folder[Symbol.asyncDispose]()
})

const token = fc.constantFrom('a', 'b', '_AGENTS_', '__proto__')
const name = fc.array(token, { minLength: 1, maxLength: 4 }).map((tokens) => tokens.join('.'))
const patternToken = fc.oneof({ weight: 2, arbitrary: token }, fc.constant('*'))
const pattern = fc
  .tuple(fc.array(patternToken, { minLength: 1, maxLength: 4 }), fc.boolean())
  .map(([tokens, open]) => (open ? [...tokens.slice(1), '>'] : tokens).join('.'))

test('wildcards - each subscriber gets exactly the channels that its pattern matches, while others come and go', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(pattern, { maxLength: 12 }),
      fc.uniqueArray(name, { maxLength: 12 }),
      async (patterns, names) => {
        const seen: string[][] = []
        const subscriptions = []
        for (const [i, each] of patterns.entries()) {
          const mine: string[] = []
          seen.push(mine)
          subscriptions.push(await engine.topics.subscribe(each, {}, ({ channel }) => void mine.push(channel)))
          // Every third one leaves again, so that branches are taken out of the index.
          if (i % 3 === 2) await subscriptions[i - 1]?.close()
        }
        for (const channel of names) await engine.topics.publish(channel, logged('x'))
        const stayed = (i: number): boolean => i % 3 !== 1 || i + 1 >= patterns.length
        const expected = patterns.map((each, i) => (stayed(i) ? names.filter(channelMatcher(each)) : []))
        for (const channel of names) {
          const matching = patterns.filter((each, i) => stayed(i) && channelMatcher(each)(channel))
          expect((await engine.channels.info('events', channel))?.subscribers).toBe(matching.length)
        }
        for (const subscription of subscriptions) await subscription.close()
        expect(seen).toEqual(expected)
        for (const channel of names) {
          expect((await engine.channels.info('events', channel))?.subscribers).toBe(0)
        }
        for (const channel of await engine.channels.list('events')) await engine.channels.delete('events', channel.name)
      },
    ),
    { seed: 7, numRuns: 200 },
  )
})

test('wildcards - a channel remembers when its last subscriber by pattern left it', async () => {
  const clock = { now: 1_000 }
  await using own = await Folder.make()
  await using timed = await own.open({ now: () => clock.now })
  await timed.topics.publish('a.b', logged('x'))
  await timed.channels.create('events', 'a.other')
  const subscription = await timed.topics.subscribe('*.b', {}, () => {})
  clock.now = 5_000
  await subscription.close()
  await timed.channels.create('events', 'c.b')
  const lastActivity = async (channel: string) => (await timed.channels.info('events', channel))?.lastActivity
  expect(await lastActivity('a.b')).toBe(5_000)
  expect(await lastActivity('a.other')).toBe(0)
  expect(await lastActivity('c.b'), 'made after it').toBe(0)
})

test('wildcards - thousands of subscribers join and leave beside thousands of channels', async () => {
  const patterns = Array.from({ length: 2_000 }, (_, i) => (i % 2 === 0 ? `*.${i}.>` : '>'))
  for (let i = 0; i < 9_000; i++) await engine.channels.create('events', `load.${i % 100}.${i}`)
  const before = process.cpuUsage()
  const subscriptions = []
  for (const each of patterns) subscriptions.push(await engine.topics.subscribe(each, {}, () => {}))
  await engine.topics.publish('load.1.1', logged('x'))
  for (const subscription of subscriptions) await subscription.close()
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1_000).toBeLessThan(1_000)
})
