import { Semaphore } from '@signalbox/broker-core/internal'
import { setImmediate as nextTick } from 'node:timers/promises'
import { expect, test } from 'vitest'

/** Acquires a place, and records when it has one. */
function enter(places: Semaphore, line: string, entered: string[], signal?: AbortSignal): Promise<void> {
  return places.acquire(signal, line).then(() => void entered.push(line))
}

test('semaphore - lines take turns, however long one of them is', async () => {
  const places = new Semaphore(2)
  const entered: string[] = []
  const waiting = ['many', 'many', 'many', 'many', 'one', 'many', 'other', 'one'].map((line) =>
    enter(places, line, entered),
  )
  for (const line of ['many', 'many', 'many', 'one', 'other', 'many']) places.release(line)
  await Promise.all(waiting)
  expect(entered).toEqual(['many', 'many', 'many', 'one', 'other', 'many', 'one', 'many'])
  places.release('one')
  places.release('many')
  expect([places.tryAcquire(), places.tryAcquire(), places.tryAcquire()]).toEqual([true, true, false])
})

test('semaphore - a waiter whose signal aborts leaves its line, and keeps no place', async () => {
  const places = new Semaphore(1)
  const entered: string[] = []
  await enter(places, 'a', entered)
  const leaving = new AbortController()
  const left = enter(places, 'b', entered, leaving.signal)
  const next = enter(places, 'c', entered)
  leaving.abort(new Error('enough'))
  await expect(left).rejects.toThrow('enough')
  places.release('a')
  await next
  expect(entered).toEqual(['a', 'c'])
  places.release('c')
  expect(places.tryAcquire()).toBe(true)
})

test('semaphore - with leavesFree a line takes at most as many places as are left, and waiting lines take turns', async () => {
  const places = new Semaphore(8, { leavesFree: true })
  const entered: string[] = []
  const leaving = new AbortController()
  const release = (...lines: readonly string[]): void => lines.forEach((line) => places.release(line))
  for (const line of ['a', 'a', 'a', 'a']) await enter(places, line, entered)
  const left = enter(places, 'a', entered, leaving.signal)
  for (const line of ['b', 'b', 'c']) await enter(places, line, entered)
  const c = enter(places, 'c', entered)
  const b = enter(places, 'b', entered)
  leaving.abort(new Error('enough'))
  await expect(left).rejects.toThrow('enough')
  // One place is free: for a line without any, and for no other.
  await enter(places, 'd', entered)
  release('a')
  await nextTick()
  expect(entered.join(' ')).toBe('a a a a b b c d')
  release('a', 'a', 'a')
  await Promise.all([b, c])
  expect(entered.join(' ')).toBe('a a a a b b c d c b')
})

test('semaphore - a place that was not taken cannot be released', () => {
  const places = new Semaphore(1)
  places.tryAcquire('a')
  expect(() => places.release('b')).toThrow('a place that was not taken is released')
})
