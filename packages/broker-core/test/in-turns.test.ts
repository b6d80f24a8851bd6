import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate as nextTick } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { countTicks } from '@signalbox/testkit/count-ticks'
import { array, assert, asyncProperty, string } from 'fast-check'
import { expect, test } from 'vitest'

import { copyInTurns, inTurns, Pace, sortInTurns, TickWork } from '../src/in-turns.ts'

test('turns - every item is visited once, in order', async () => {
  for (const length of [0, 1, 255, 256, 257, 1_000]) {
    const items = Array.from({ length }, (_, i) => i)
    const visited: number[] = []
    await inTurns(items, (item) => visited.push(item))
    expect(visited).toEqual(items)
  }
})

function workUntil(end: number): void {
  while (performance.now() < end);
}

test('turns - a long pass lets other work run', async () => {
  let others = 0
  const other = setInterval(() => others++, 1)
  await inTurns(
    Array.from({ length: 2_560 }, (_, i) => i),
    (item) => {
      if (item % 256 === 0) workUntil(performance.now() + 6)
    },
  )
  clearInterval(other)
  expect(others).toBeGreaterThan(3)
})

test('turns - tasks that share a pace do one long piece of work in each tick', async () => {
  const pace = new Pace()
  const tick = countTicks()
  const ticks: number[] = []
  const task = async (): Promise<void> => {
    while (pace.isOver) await pace.rest()
    pace.run(() => {
      ticks.push(tick())
      workUntil(performance.now() + 6)
    })
  }
  await Promise.all([task(), task(), task(), task()])
  expect(new Set(ticks).size).toBe(4)
})

test('tick work - calls that end at the same time are handled in order, a few of them in each tick', async () => {
  const work = new TickWork()
  const done: { readonly call: number; readonly tick: number }[] = []
  const tick = countTicks()
  const ended = async (call: number): Promise<void> => {
    // The work of a call begins after its promise, not in it.
    await new Promise<void>((resolve) => work.soon(resolve)).then(() => {})
    workUntil(performance.now() + 0.5)
    done.push({ call, tick: tick() })
  }
  await Promise.all(Array.from({ length: 60 }, (_, call) => ended(call)))
  expect(done.map(({ call }) => call)).toEqual(Array.from({ length: 60 }, (_, call) => call))
  const perTick = Map.groupBy(done, (each) => each.tick)
  expect(Math.max(...Array.from(perTick.values(), (calls) => calls.length))).toBeLessThanOrEqual(36)
})

test('tick work - work runs at once while the tick has time, and later after work that waits', async () => {
  const work = new TickWork()
  const ran: string[] = []
  for (let piece = 1; piece < 32; piece++) work.run(() => workUntil(performance.now() + 0.1))
  work.run(() => ran.push('first'))
  expect(ran).toEqual(['first'])
  work.run(() => ran.push('second'))
  work.run(() => ran.push('third'))
  const rest = new Promise<void>((resolve) => work.soon(resolve)).then(() => ran.push('fourth'))
  expect(ran).toEqual(['first'])
  await rest
  expect(ran).toEqual(['first', 'second', 'third', 'fourth'])
})

test('tick work - an account waits for one piece of each other account, and its own work keeps its order', async () => {
  const work = new TickWork()
  const ran: string[] = []
  const pieces = ['many', 'many', 'many', 'one', 'many', 'other', 'one', 'many'].map(
    (account, number) =>
      new Promise<void>((resolve) => {
        work.soon(() => {
          ran.push(`${account} ${number}`)
          resolve()
        }, account)
      }),
  )
  await Promise.all(pieces)
  expect(ran).toEqual(['many 0', 'one 3', 'other 5', 'many 1', 'one 6', 'many 2', 'many 4', 'many 7'])
})

test('tick work - a tick begins fewer pieces while several callers have requests', async () => {
  const work = new TickWork()
  const tick = countTicks()
  const ticks: number[] = []
  work.share()
  await Promise.all(
    Array.from({ length: 40 }, async () => {
      await new Promise<void>((resolve) => work.soon(resolve))
      workUntil(performance.now() + 0.5)
      ticks.push(tick())
    }),
  )
  const perTick = Map.groupBy(ticks, (each) => each)
  expect(Math.max(...Array.from(perTick.values(), (pieces) => pieces.length))).toBeLessThanOrEqual(12)
})

test('tick work - work that waits keeps the asynchronous context of its caller', async () => {
  const work = new TickWork()
  const context = new AsyncLocalStorage<string>()
  const seen: (string | undefined)[] = []
  const calls = Array.from({ length: 40 }, (_, call) => `call ${call}`)
  await Promise.all(
    calls.map(
      (call) =>
        new Promise<void>((resolve) => {
          context.run(call, () =>
            work.run(() => {
              seen.push(context.getStore())
              workUntil(performance.now() + 0.1)
              resolve()
            }),
          )
        }),
    ),
  )
  expect(seen).toEqual(calls)
})

test('tick work - finished work is released while other work waits', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const work = new TickWork()
  const finished: WeakRef<object>[] = []
  let isOver = false
  // Each piece adds one, so that work always waits.
  const add = (): void => {
    const piece = (): void => {
      finished.push(new WeakRef(piece))
      if (!isOver) add()
    }
    work.soon(piece)
  }
  add()
  add()
  while (finished.length < 3_000) await nextTick()
  collect()
  isOver = true
  expect(finished.filter((piece) => piece.deref() !== undefined).length).toBeLessThan(1_000)
})

test('copy in turns - other work runs during a long copy, and the copy equals the bytes', async () => {
  const bytes = Uint8Array.from({ length: 5_000_001 }, (_, i) => i % 251)
  const tick = countTicks()
  const copies = await Promise.all(Array.from({ length: 16 }, () => copyInTurns(bytes)))
  for (const copy of copies) expect(Buffer.compare(copy, bytes)).toBe(0)
  expect(tick()).toBeGreaterThan(1)
  expect(await copyInTurns(new Uint8Array(0))).toEqual(new Uint8Array(0))
})

test('sort in turns - few names', async () => {
  await assert(
    asyncProperty(array(string()), async (names) => {
      expect(await sortInTurns(names)).toEqual(names.toSorted())
    }),
    { seed: 29 },
  )
})

test('sort in turns - many names, in any order', async () => {
  for (const count of [4_097, 8_192, 20_000]) {
    const names = Array.from({ length: count }, (_, i) => `channel.${(i * 7_919) % count}`)
    expect(await sortInTurns(names)).toEqual(names.toSorted())
  }
})
