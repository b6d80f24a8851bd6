import { Semaphore } from '@signalbox/broker-core/internal'
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
  for (let released = 0; released < 6; released++) places.release()
  await Promise.all(waiting)
  expect(entered).toEqual(['many', 'many', 'many', 'one', 'other', 'many', 'one', 'many'])
  places.release()
  places.release()
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
  places.release()
  await next
  expect(entered).toEqual(['a', 'c'])
  places.release()
  expect(places.tryAcquire()).toBe(true)
})
