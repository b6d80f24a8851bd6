import type { BrokerErrorCode } from '@signalbox/broker-core'
import { BROKER_ERRORS, BrokerError } from '@signalbox/broker-core'
import { JsonRpcError } from '@signalbox/http-kit'
import { describe, expect, test } from 'vitest'

import { brokerFailure } from '../src/tools/broker-failures.ts'
import { openToolBench } from './tool-bench.ts'

const CODES = Object.keys(BROKER_ERRORS) as BrokerErrorCode[]
const AS_ARGUMENTS = new Set<BrokerErrorCode>(['ARGUMENT_INVALID', 'CHANNEL_INVALID', 'MESSAGE_INVALID'])
const AS_INTERNAL = new Set<BrokerErrorCode>(['CONFLICT'])

describe('tools - Broker errors', () => {
  test.each(CODES.filter((code) => !AS_ARGUMENTS.has(code) && !AS_INTERNAL.has(code)))(
    '%s is a tool error that names the code, what happened and what to do',
    (code) => {
      const { text, isError, structuredContent } = brokerFailure('queue_send', new BrokerError(code, 'it went wrong'))
      expect(isError).toBe(true)
      expect(text).toMatch(new RegExp(`^${code}: It went wrong\\. [A-Z].{20,}\\.$`))
      expect(structuredContent).toBeUndefined()
    },
  )

  test.each([...AS_ARGUMENTS])('%s, should a check have let it pass, is -32602', (code) => {
    const error = new BrokerError(code, 'it is not right', { argument: 'delayMs' })
    expect(() => brokerFailure('queue_send', error)).toThrow(JsonRpcError)
    expect(() => brokerFailure('queue_send', error)).toThrow('invalid arguments for queue_send: it is not right')
  })

  test('an error that is not a tool error stays an internal one', () => {
    for (const error of [new Error('bug'), new BrokerError('CONFLICT', 'lost')]) {
      expect(() => brokerFailure('queue_send', error)).toThrow(error)
    }
  })

  test('C4 - a full queue and too many channels are tool errors', async () => {
    await using bench = await openToolBench(undefined, { queueMaxMessages: 1, maxChannels: 2 })
    await bench.call('queue_send', { channel: 'full', body: '' })
    const full = await bench.call('queue_send', { channel: 'full', body: '' })
    expect(full).toMatchObject({ isError: true, text: expect.stringMatching(/^QUEUE_FULL: .*"?full"?/) })
    await bench.call('events_store_publish', { channel: 'second', body: '' })
    const crowded: [string, object][] = [
      ['queue_send', { channel: 'third', body: '' }],
      ['events_store_publish', { channel: 'third', body: '' }],
    ]
    for (const [tool, args] of crowded) {
      const { text, isError } = await bench.call(tool, args)
      expect(isError).toBe(true)
      expect(text).toMatch(/^CHANNEL_LIMIT: /)
    }
    expect(await bench.json('channel_list', {})).toHaveLength(2)
  })

  test('an engine that has closed is a tool error that says to try again', async () => {
    await using bench = await openToolBench()
    await bench.engine.close()
    const { text, isError } = await bench.call('queue_send', { channel: 'c', body: '' })
    expect(isError).toBe(true)
    expect(text).toMatch(/^ENGINE_UNAVAILABLE: .*try again/)
  })
})
