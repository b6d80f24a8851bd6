import { MAX_COPIES, MAX_HOPS, parseRoutingTable } from '@signalbox/broker-core'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { text } from './broker-fixture.ts'
import type { Entry } from './routing-fixture.ts'
import { openRouted, queued, stored, told, toldFailure } from './routing-fixture.ts'

test('routing - copies are routed on', async () => {
  const { alice, copies } = await openRouted([
    { key: 'a', routes: 'events:b' },
    { key: 'b', routes: 'events_store:c' },
    { key: 'c', routes: 'queues:d' },
  ])
  await alice.queues.send('a', text('x'))
  expect(await queued(alice, 'd')).toEqual(['x'])
  expect(copies.map(told)).toEqual([
    '0: queues:a > events:b (1)',
    '1: events:b > events_store:c (2)',
    '2: events_store:c > queues:d (3)',
  ])
})

test('routing - a message never returns to a channel that it has passed, and the cycle is reported', async () => {
  const { alice, copies, failures } = await openRouted([
    { key: 'a', routes: 'queues:b' },
    { key: 'b', routes: 'queues:c' },
    { key: 'c', routes: 'queues:a;queues:b' },
  ])
  await alice.queues.send('a', text('x'))
  expect(copies).toHaveLength(2)
  expect(await Promise.all(['a', 'b', 'c'].map((channel) => queued(alice, channel)))).toEqual([['x'], ['x'], ['x']])
  expect(failures.map(toldFailure)).toEqual(['2: queues:c > queues:a cycle', '2: queues:c > queues:b cycle'])
})

test('routing - a channel of another type is another channel', async () => {
  const { alice, copies, failures } = await openRouted([{ key: 'a', routes: 'events_store:a;events:a;queues:a' }])
  await alice.queues.send('a', text('x'))
  expect(copies.map(told).sort()).toEqual(['0: queues:a > events:a (1)', '0: queues:a > events_store:a (1)'])
  expect(await queued(alice, 'a')).toEqual(['x'])
  expect(failures).toEqual([])
})

test('routing - a rule that copies every channel to an archive is not a cycle', async () => {
  const { alice, failures } = await openRouted([{ key: '.*', routes: 'events_store:archive' }])
  await alice.queues.send('a', text('x'))
  await alice.eventsStore.publish('archive', text('y'))
  expect(await stored(alice, 'archive')).toEqual(['x', 'y'])
  expect(failures).toEqual([])
})

test('routing - a message sent to a target of its own rule is not a cycle', async () => {
  const { alice, copies, failures } = await openRouted([
    { key: "type = 'signalbox.message'", keyType: 'cesql', routes: 'events_store:archive;queues:work' },
  ])
  await alice.queues.send('work', text('x'))
  expect(copies.map(told)).toEqual(['0: queues:work > events_store:archive (1)'])
  expect(failures).toEqual([])
})

test('routing - a rule that fails in a chain is reported once for each message', async () => {
  const { alice, copies, failures } = await openRouted([
    { key: 'ttl > 3', keyType: 'cesql', routes: 'queues:never' },
    { key: 'INT(subject) > 3', keyType: 'cesql', routes: 'queues:big' },
    { key: 'a', routes: 'queues:b' },
    { key: 'b', routes: 'queues:7' },
  ])
  await alice.queues.send('a', text('x'))
  await alice.queues.send('a', text('y'))
  const once = ['0: queues:a condition', '1: queues:a condition']
  expect(failures.map(toldFailure)).toEqual([...once, ...once])
  // Not clear at first, it is clear on the channel that is a number.
  expect(copies.slice(0, 3).map(told)).toEqual([
    '2: queues:a > queues:b (1)',
    '3: queues:b > queues:7 (2)',
    '1: queues:7 > queues:big (3)',
  ])
  expect(await queued(alice, 'big')).toEqual(['x', 'y'])
})

test('routing - a channel that several rules lead to gets one copy', async () => {
  const { alice, failures } = await openRouted([
    { key: 'a', routes: 'queues:b;queues:c' },
    { key: 'a|b|c', routes: 'events_store:end' },
    { key: 'b', routes: 'queues:{ce_to};queues:c' },
  ])
  await alice.queues.send('a', { ...text('x'), tags: { ce_to: 'c' } })
  expect(await stored(alice, 'end')).toEqual(['x'])
  expect(await queued(alice, 'c')).toEqual(['x'])
  expect(failures).toEqual([])
})

test('routing - a chain ends after 16 copies in a row, with a report', async () => {
  const { alice, copies, failures } = await openRouted(
    Array.from({ length: MAX_HOPS + 4 }, (_, i) => ({ key: `c${i}`, routes: `queues:c${i + 1}` })),
  )
  await alice.queues.send('c0', text('x'))
  expect(copies).toHaveLength(MAX_HOPS)
  expect(MAX_HOPS).toBe(16)
  expect(copies.at(-1)?.hops).toBe(16)
  expect(failures.map(toldFailure)).toEqual(['16: queues:c16 > queues:c17 hops'])
})

test('routing - a message has at most 256 copies, and the excess is reported', async () => {
  const { alice, copies, failures } = await openRouted(
    Array.from({ length: 5 }, (_, rule) => ({ key: 'in', routes: targets(rule) })),
  )
  await alice.queues.send('in', text('x'))
  expect(copies).toHaveLength(MAX_COPIES)
  expect(MAX_COPIES).toBe(256)
  expect(failures.map(({ reason }) => reason)).toEqual(Array(300 - 256).fill('copies'))
})

test('routing - random tables deliver one copy to every channel within reach, and end', async () => {
  const { alice, routing, copies, failures } = await openRouted([])
  const place = fc.tuple(fc.constantFrom('queues', 'events_store'), fc.constantFrom('a', 'b', 'c', 'd', 'e'))
  const rule = fc.record({
    from: fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { minLength: 1, maxLength: 3 }),
    to: fc.uniqueArray(place, { minLength: 1, maxLength: 3, selector: ([type, name]) => `${type}:${name}` }),
  })
  let runs = 0
  await fc.assert(
    fc.asyncProperty(fc.array(rule, { maxLength: 8 }), fc.constantFrom('a', 'b'), async (rules, start) => {
      // Channels of their own for each run.
      runs += 1
      const entries = rules.map(({ from, to }): Entry => ({
        key: `r${runs}\\.(?:${from.join('|')})`,
        routes: to.map(([type, name]) => `${type}:r${runs}.${name}`).join(';'),
      }))
      routing.replace(parseRoutingTable(entries))
      const [madeBefore, failedBefore] = [copies.length, failures.length]
      await alice.queues.send(`r${runs}.${start}`, text('x'))

      const reached = reachable(rules, start)
      const made = copies.slice(madeBefore)
      expect(made.map(({ to }) => `${to.type}:${to.channel.split('.')[1]}`).sort()).toEqual(
        [...reached].filter((address) => address !== `queues:${start}`).sort(),
      )
      for (const address of reached) {
        const [type, name] = address.split(':')
        const bodies = await (type === 'queues' ? queued : stored)(alice, `r${runs}.${name}`)
        expect([address, bodies]).toEqual([address, ['x']])
      }
      for (const { reason } of failures.slice(failedBefore)) expect(reason).toBe('cycle')
    }),
    { seed: 23, numRuns: 80 },
  )
})

/** Sixty targets that no other rule has. */
function targets(rule: number): string {
  return Array.from({ length: 60 }, (_, i) => `events:t${rule}.${i}`).join(';')
}

/** Every place that rules lead to from a queue, the queue itself among them. */
function reachable(
  rules: readonly { readonly from: readonly string[]; readonly to: readonly (readonly [string, string])[] }[],
  start: string,
): ReadonlySet<string> {
  const reached = new Set([`queues:${start}`])
  for (const address of reached) {
    for (const { from, to } of rules) {
      if (from.includes(address.split(':')[1] ?? '')) for (const [type, name] of to) reached.add(`${type}:${name}`)
    }
  }
  return reached
}
