import { expect, test } from 'vitest'

import { engineSettingsOf, wholeOption } from '@signalbox/broker-core/internal'

const DEFAULTS = { maxChannels: 500, largestMessageBytes: 1024 }

test('engine options - options that are not given have their defaults', () => {
  expect(engineSettingsOf({ maxMessageBytes: 1024 }, DEFAULTS)).toEqual({
    maxMessageBytes: 1024,
    maxChannels: 500,
    queueMaxMessages: 0,
    queueMaxBytes: 0,
    eventsStoreMaxAgeMs: 0,
    eventsStoreMaxBytes: 0,
    durableGroupMs: 604_800_000,
    maxDurableGroups: 1000,
  })
  expect(engineSettingsOf({}, { maxChannels: 1 }).maxMessageBytes).toBe(64 * 1024 * 1024)
})

test('engine options - 0 channels are unlimited', () => {
  expect(engineSettingsOf({ maxChannels: 0, maxMessageBytes: 1 }, DEFAULTS).maxChannels).toBe(Number.MAX_SAFE_INTEGER)
})

test.each([
  [{ maxMessageBytes: 1025 }, 'invalid option maxMessageBytes: 1025; allowed is a whole number from 1 to 1024'],
  [{ maxMessageBytes: 0 }, 'invalid option maxMessageBytes: 0; allowed is a whole number from 1 to 1024'],
  [{ queueMaxBytes: -1 }, 'invalid option queueMaxBytes: -1; allowed is a whole number of at least 0'],
  [{ queueMaxMessages: 1.5 }, 'invalid option queueMaxMessages: 1.5; allowed is a whole number of at least 0'],
  [{ maxChannels: Number.NaN }, 'invalid option maxChannels: NaN; allowed is a whole number of at least 0'],
  [{ durableGroupMs: 999 }, 'invalid option durableGroupMs: 999; allowed is a whole number of at least 1000'],
  [{ maxDurableGroups: 0 }, 'invalid option maxDurableGroups: 0; allowed is a whole number of at least 1'],
])('engine options - %j is refused with the allowed values', (options, message) => {
  expect(() => engineSettingsOf({ maxMessageBytes: 1, ...options }, DEFAULTS)).toThrow(new RangeError(message))
})

test('engine options - options of one engine are checked in the same way', () => {
  expect(wholeOption('ackWaitMs', undefined, 35_000, 1_000)).toBe(35_000)
  expect(() => wholeOption('ackWaitMs', 10, 35_000, 1_000)).toThrow(
    'invalid option ackWaitMs: 10; allowed is a whole number of at least 1000',
  )
})
