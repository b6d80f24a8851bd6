import * as fc from 'fast-check'
import { anyCharacter } from '@signalbox/testkit/any-character'
import { cases } from '@signalbox/testkit/property-cases'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { ToolBench } from './tool-bench.ts'
import { openToolBench } from './tool-bench.ts'

let bench: ToolBench

beforeAll(async () => {
  bench = await openToolBench()
})

afterAll(() => bench[Symbol.asyncDispose]())

/** Any text that JSON and UTF-8 can both carry: control characters, NUL, BOM, every plane. */
const text = fc.string({ unit: anyCharacter, maxLength: 200 })
const message = fc.record({
  body: fc.oneof(text, fc.json()),
  metadata: text,
  tags: fc
    .array(fc.tuple(fc.oneof(text, fc.constantFrom('__proto__', 'constructor', 'toString')), text), { maxLength: 5 })
    .map((pairs) => Object.fromEntries(pairs.filter(([key]) => key !== 'message_id'))),
})
const fixed = { seed: 20_261_120, numRuns: cases(150) }

/** As it arrives from a client. */
function over<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T
}

describe('tools - what goes in comes out', () => {
  test('any body, metadata and tags sent by queue_send come back by queue_peek and queue_receive', async () => {
    await fc.assert(
      fc.asyncProperty(message, async (sent) => {
        await bench.call('queue_send', over({ channel: 'any', ...sent }))
        const args = { channel: 'any', max_messages: 10 }
        expect(await bench.json('queue_peek', args)).toStrictEqual([over(sent)])
        expect(await bench.json('queue_receive', args)).toStrictEqual([over(sent)])
      }),
      fixed,
    )
  })

  test('the same through events_store_publish, events_store_read and events_store_read_latest', async () => {
    let sequence = 0
    await fc.assert(
      fc.asyncProperty(message, async (sent) => {
        await bench.call('events_store_publish', over({ channel: 'any', ...sent }))
        sequence += 1
        const stored = [{ ...over(sent), sequence, timestamp: expect.any(String) }]
        const from = { channel: 'any', from_sequence: sequence, max_messages: 10 }
        expect(await bench.json('events_store_read', from)).toEqual(stored)
        expect(await bench.json('events_store_read_latest', { channel: 'any' })).toEqual(stored)
      }),
      fixed,
    )
  })
})
