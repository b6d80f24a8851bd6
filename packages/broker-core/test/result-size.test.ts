import { assert, constantFrom, integer, property, array, record } from 'fast-check'
import { expect, test, vi } from 'vitest'

import type { MessageContent } from '@signalbox/broker-core/engine'
import { ResultSize } from '@signalbox/broker-core/engine'

const messageOf = (bytes: number): MessageContent => ({ body: new Uint8Array(bytes), metadata: '', tags: {} })

/** Returns the number of messages that fit if the size of each is computed at once. */
function fitting(maxBytes: number, sizes: readonly { readonly bytes: number; readonly factor: number }[]): number {
  let left = maxBytes
  for (const [index, { bytes, factor }] of sizes.entries()) {
    const isUncounted = index === 0 && bytes >= left
    const size = isUncounted ? bytes : bytes * factor
    if (index > 0 && (bytes > left || size > left)) return index
    left -= size
  }
  return sizes.length
}

test('result size - as many messages fit as if each was measured at once', () => {
  const sizes = array(record({ bytes: integer({ min: 0, max: 4_000 }), factor: constantFrom(1, 2, 6) }), {
    maxLength: 8,
  })
  assert(
    property(sizes, integer({ min: 1, max: 30_000 }), (messages, maxBytes) => {
      const factors = new Map(messages.map(({ bytes, factor }) => [messageOf(bytes), factor]))
      const sizeOf = (message: MessageContent): number => message.body.byteLength * (factors.get(message) ?? 1)
      const result = new ResultSize({ maxBytes, sizeOf })
      let count = 0
      for (const message of factors.keys()) {
        if (!result.mayFit(message.body.byteLength) || !result.add(message, message.body.byteLength)) break
        count++
      }
      expect(count).toBe(fitting(maxBytes, messages))
    }),
    { seed: 11, numRuns: 2_000 },
  )
})

test('result size - a small message that stays alone is not measured', () => {
  const sizeOf = vi.fn<(message: MessageContent) => number>(() => 100)
  const result = new ResultSize({ maxBytes: 150, sizeOf })

  expect(result.add(messageOf(10), 10)).toBe(true)
  expect(sizeOf).not.toHaveBeenCalled()
  expect(result.add(messageOf(20), 20)).toBe(false)
  expect(sizeOf).toHaveBeenCalledTimes(2)
})
