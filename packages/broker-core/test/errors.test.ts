import { expect, test } from 'vitest'

import { BrokerError, isBrokerError } from '@signalbox/broker-core'

test('broker errors - the check recognizes them, and only them, by code too', () => {
  const error = new BrokerError('QUEUE_FULL', 'the queue is full')
  expect([isBrokerError(error), isBrokerError(error, 'QUEUE_FULL'), isBrokerError(error, 'CONFLICT')]).toEqual([
    true,
    true,
    false,
  ])
  const others = [new Error('x'), Object.assign(new Error('x'), { name: 'BrokerError', code: 'QUEUE_FULL' }), {}, null]
  expect(others.filter((other) => isBrokerError(other))).toEqual([])
})

test('broker errors - recognizes errors from a second copy of the package', async () => {
  // The query makes it a module apart.
  const copy: string = '../src/errors.ts?copy'
  const { BrokerError: Other }: { BrokerError: typeof BrokerError } = await import(copy)
  expect(Other).not.toBe(BrokerError)
  const error = new Other('CONFLICT', 'x')
  expect(error).not.toBeInstanceOf(BrokerError)
  expect(isBrokerError(error, 'CONFLICT')).toBe(true)
})
