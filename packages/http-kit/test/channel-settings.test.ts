import { expect, test } from 'vitest'

import { problemsText, readChannelSettings } from '../src/internal.ts'

const QUEUE = { type: 'queues', match: 'jobs.*' }

function problemsOf(given: unknown): string {
  const read = readChannelSettings(given, 'api')
  return 'problems' in read ? problemsText(read.problems) : ''
}

test('channel settings - parts that an entry leaves out have their defaults', () => {
  const read = readChannelSettings(
    { ...QUEUE, retry: { max_receive_count: 3 }, consumers: {}, groups: { mode: 'fair' }, retention: {} },
    'file',
  )
  expect('entry' in read && read.entry).toEqual({
    ...QUEUE,
    source: 'file',
    retry: {
      max_receive_count: 3,
      dead_letter_queue: '',
      min_backoff_seconds: 0,
      max_backoff_seconds: 300,
      backoff_factor: 2,
      jitter: 0.2,
    },
    consumers: { paused_until: null, max_per_second: 0, max_in_flight: 0 },
    groups: { mode: 'fair', max_in_flight_per_group: 1 },
    retention: { on_expiry: 'drop', compact: false },
  })
})

test('channel settings - null stays null: it ends the search', () => {
  const read = readChannelSettings({ ...QUEUE, retry: null, schema: null }, 'api')
  expect('entry' in read && read.entry).toMatchObject({ retry: null, schema: null })
})

test.each([
  ['no object', 7, 'arguments is 7; it must be an object'],
  ['an unknown type', { ...QUEUE, type: 'topics', description: 'x' }, 'type is "topics"; it must be one of queues, '],
  ['no match', { type: 'queues', description: 'x' }, 'match is missing'],
  ['no member', QUEUE, 'it must be at least one of description, retry, consumers'],
  ['a bad name', { ...QUEUE, match: 'a..b', description: 'x' }, 'match is "a..b"; it must be a channel name, or a '],
  ['a name of the broker', { ...QUEUE, match: '_AGENTS_.x', description: 'x' }, 'does not begin with _AGENTS_.'],
  ['an unknown member', { ...QUEUE, retries: {} }, "retries is unknown; it must be one of the entry's arguments: "],
  ['an unknown part', { ...QUEUE, retry: { jitters: 1 } }, "retry.jitters is unknown; it must be one of the retry's "],
  ['a part out of range', { ...QUEUE, retry: { jitter: 2 } }, 'retry.jitter is 2; it must be a number from 0 to 1'],
  ['a text for a member', { ...QUEUE, retry: 'often' }, 'retry is "often"; it must be an object, or null'],
  ['no window', { ...QUEUE, deduplication: {} }, 'deduplication.window_seconds is missing; it must be a whole number '],
  ['a bad time', { ...QUEUE, consumers: { paused_until: 'soon' } }, 'consumers.paused_until is "soon"; it must be '],
  ['crossed bounds', { ...QUEUE, retry: { min_backoff_seconds: 400 } }, 'at most max_backoff_seconds, which is 300'],
  [
    'a queue as its own dead-letter queue',
    { type: 'queues', match: 'jobs', retry: { dead_letter_queue: 'jobs' } },
    'another queue than match',
  ],
  [
    'two in flight in order',
    { ...QUEUE, groups: { mode: 'ordered', max_in_flight_per_group: 2 } },
    'groups.max_in_flight_per_group is 2; it must be 1 with the mode ordered',
  ],
  ['a retry of events', { ...QUEUE, type: 'events', retry: {} }, 'absent for events: only queues have it'],
  ['a compact queue', { ...QUEUE, retention: { compact: true } }, 'only events stores have it'],
  [
    'messages of a store',
    { ...QUEUE, type: 'events_store', retention: { max_messages: 1 } },
    'retention.max_messages is 1; it must be absent: only queues have it',
  ],
  [
    'a default without its version',
    { ...QUEUE, schema: { default: 'two', versions: { one: {} } } },
    'schema.default is "two"; it must be a name in versions: one',
  ],
  [
    'a large entry',
    { ...QUEUE, schema: { default: 'a', versions: { a: { title: 'x'.repeat(70_000) } } } },
    '65536 bytes',
  ],
])('channel settings - %s is refused', (_what, given, problem) => {
  expect(problemsOf(given)).toContain(problem)
})

test('channel settings - every problem is named', () => {
  expect(problemsOf({ ...QUEUE, retry: { jitter: 2, backoff_factor: 0 }, groups: { mode: 'x' } })).toBe(
    'retry.backoff_factor is 0; it must be a number from 1 to 100. retry.jitter is 2; it must be a number from 0 to 1. groups.mode is "x"; it must be one of ordered, fair',
  )
})
