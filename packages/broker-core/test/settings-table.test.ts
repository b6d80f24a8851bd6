import { assert, double, integer, property, record } from 'fast-check'
import { expect, test } from 'vitest'

import type { RetrySettings, SettingsEntry } from '@signalbox/broker-core'
import { SettingsTable } from '@signalbox/broker-core'
import { retryDelayMs } from '@signalbox/broker-core/engine'

const entry = (match: string, given: Partial<SettingsEntry>, source: 'api' | 'file' = 'api'): SettingsEntry => ({
  type: 'queues',
  match,
  source,
  ...given,
})

function table(...entries: SettingsEntry[]): SettingsTable {
  const settings = new SettingsTable()
  settings.replace(entries)
  return settings
}

test('settings - each member comes whole from the most specific entry that has it', () => {
  const settings = table(
    entry('*', { description: 'all', deduplication: { window_seconds: 5 } }),
    entry('jobs.*', { deduplication: { window_seconds: 10 } }),
    entry('jobs.images', { description: 'images' }),
  )
  expect(settings.of('queues', 'jobs.images')).toMatchObject({
    description: 'images',
    deduplication: { window_seconds: 10 },
  })
  expect(settings.of('queues', 'jobs.text').description).toBe('all')
  expect(settings.of('queues', 'other').deduplication).toEqual({ window_seconds: 5 })
  expect(settings.of('events', 'jobs.images')).toEqual({})
  expect(settings.origins('queues', 'jobs.images')).toEqual({
    description: { match: 'jobs.images', source: 'api' },
    deduplication: { match: 'jobs.*', source: 'api' },
  })
})

test('settings - null ends the search for a member', () => {
  const settings = table(entry('*', { description: 'all' }), entry('jobs.*', { description: null }))
  expect(settings.of('queues', 'jobs.a').description).toBeUndefined()
  expect(settings.of('queues', 'other').description).toBe('all')
})

test('settings - an entry of the API wins over one of the file with the same pattern, in any order', () => {
  const file = entry('jobs.*', { description: 'file' }, 'file')
  const api = entry('jobs.*', { description: 'api' })
  expect(table(file, api).of('queues', 'jobs.a').description).toBe('api')
  expect(table(api, file).of('queues', 'jobs.a').description).toBe('api')
  const name = entry('jobs.a', { description: 'name' }, 'file')
  expect(table(api, name).of('queues', 'jobs.a').description).toBe('name')
})

test('settings - the broker’s own channels have none', () => {
  const settings = table(entry('*', { description: 'all' }))
  expect(settings.of('queues', '_AGENTS_.inbox/a')).toEqual({})
  expect(settings.origins('queues', '_AGENTS_.inbox/a')).toEqual({})
})

test('settings - a change applies to names that were asked for before', () => {
  const settings = table(entry('*', { description: 'one' }))
  expect(settings.of('queues', 'a').description).toBe('one')
  let changes = 0
  const end = settings.onChange(() => changes++)
  settings.replace([])
  expect(settings.active).toBe(false)
  expect(settings.of('queues', 'a')).toEqual({})
  end()
  settings.replace([entry('*', { description: 'two' })])
  expect(changes).toBe(1)
})

test('settings - the delay grows by the factor, stays within its bounds, and the jitter only shortens it', () => {
  const bounds = record({
    min: integer({ min: 0, max: 100 }),
    more: integer({ min: 0, max: 1_000 }),
    factor: double({ min: 1, max: 10, noNaN: true }),
    jitter: double({ min: 0, max: 1, noNaN: true }),
    random: double({ min: 0, max: 1, noNaN: true }),
    receives: integer({ min: 1, max: 100 }),
  })
  assert(
    property(bounds, ({ min, more, factor, jitter, random, receives }) => {
      const retry: RetrySettings = {
        max_receive_count: 0,
        dead_letter_queue: '',
        min_backoff_seconds: min,
        max_backoff_seconds: min + more,
        backoff_factor: factor,
        jitter,
      }
      const whole = retryDelayMs({ ...retry, jitter: 0 }, receives)
      expect(whole).toBe(Math.round(Math.min(min + more, min * factor ** (receives - 1)) * 1_000))
      const delay = retryDelayMs(retry, receives, random)
      expect(delay).toBeLessThanOrEqual(whole)
      expect(delay).toBeGreaterThanOrEqual(Math.floor(whole * (1 - jitter)) - 1)
    }),
  )
})
