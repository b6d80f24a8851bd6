import type { RequestMessage } from '@signalbox/broker-core'
import { decodeText, encodeText } from '@signalbox/broker-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import type { ToolBench } from './tool-bench.ts'
import { openToolBench } from './tool-bench.ts'

let bench: ToolBench

beforeAll(async () => {
  bench = await openToolBench()
})

afterAll(() => bench[Symbol.asyncDispose]())

describe('tools - command_send', () => {
  test('TOOL-18 - confirms naming the channel once the subscriber has carried it out', async () => {
    const seen = Promise.withResolvers<RequestMessage>()
    await bench.user.commands.subscribe('lights', {}, (request) => {
      seen.resolve(request)
      return {}
    })
    const args = { channel: 'lights', body: 'on', metadata: 'm', tags: { room: '1' } }
    const { text, isError, structuredContent } = await bench.call('command_send', args)
    expect({ text, isError }).toEqual({
      text: 'Command executed by the subscriber on channel "lights".',
      isError: false,
    })
    expect(structuredContent).toEqual({ channel: 'lights', executed: true })
    const request = await seen.promise
    expect({ ...request, body: decodeText(request.body) }).toMatchObject({ ...args, clientId: 'anonymous' })
  })
})

describe('tools - query_send', () => {
  test('TOOL-20, M10 - the text is the payload of the reply, as it is', async () => {
    await bench.user.queries.subscribe('sum', {}, ({ body }) => ({
      body: encodeText(`{"sum": ${decodeText(body)}}`),
      metadata: 'application/json',
      tags: { unit: 'eur' },
    }))
    const { text, isError, structuredContent } = await bench.call('query_send', {
      channel: 'sum',
      body: '9007199254740993',
    })
    expect({ text, isError }).toEqual({ text: '{"sum": 9007199254740993}', isError: false })
    expect(structuredContent).toEqual({ reply: text, metadata: 'application/json', tags: { unit: 'eur' } })
  })

  test('an empty reply is an empty text', async () => {
    await bench.user.queries.subscribe('void', {}, () => ({}))
    const { text, isError, structuredContent } = await bench.call('query_send', { channel: 'void', body: '' })
    expect({ text, isError, structuredContent }).toEqual({
      text: '',
      isError: false,
      structuredContent: { reply: '', metadata: '', tags: {} },
    })
  })

  test('M10 - a reply that is not UTF-8 is base64, with body_encoding', async () => {
    await bench.user.queries.subscribe('bytes', {}, () => ({ body: Uint8Array.of(0xff, 0xfe) }))
    const { text, structuredContent } = await bench.call('query_send', { channel: 'bytes', body: '' })
    expect(text).toBe('//4=')
    expect(structuredContent).toMatchObject({ reply: '//4=', body_encoding: 'base64' })
  })
})

describe.each([
  { tool: 'command_send', type: 'commands' },
  { tool: 'query_send', type: 'queries' },
] as const)('tools - $tool fails as a tool error', ({ tool, type }) => {
  test('TOOL-19, TOOL-21 - the subscriber rejects it, and the text says why', async () => {
    await bench.user[type].subscribe('reject', {}, () => ({ error: 'the valve is stuck' }))
    const { text, isError } = await bench.call(tool, { channel: 'reject', body: '' })
    expect(isError).toBe(true)
    expect(text).toMatch(/^REJECTED: .*"reject": the valve is stuck$/)
  })

  test('a subscriber that throws rejects it without showing its insides', async () => {
    await bench.user[type].subscribe('throws', {}, () => {
      throw new Error('secret detail')
    })
    const { text, isError } = await bench.call(tool, { channel: 'throws', body: '' })
    expect(isError).toBe(true)
    expect(text).toContain('REJECTED')
    expect(text).not.toContain('secret')
  })

  test('TOOL-19, TOOL-21, M11 - without a subscriber the error names the cause', async () => {
    const started = performance.now()
    const { text, isError } = await bench.call(tool, { channel: 'nobody', body: '', timeout_seconds: 1 })
    expect(performance.now() - started).toBeGreaterThan(990)
    expect(isError).toBe(true)
    expect(text).toMatch(/^NO_SUBSCRIBER: /)
    expect(text).toContain('safe to send it again')
  })

  test('TOOL-19, TOOL-21, M11 - a subscriber that does not answer is a different error', async () => {
    const answered = Promise.withResolvers<object>()
    await bench.user[type].subscribe('silent', {}, () => answered.promise)
    const { text, isError } = await bench.call(tool, { channel: 'silent', body: '', timeout_seconds: 1 })
    answered.resolve({})
    expect(isError).toBe(true)
    expect(text).toMatch(/^REQUEST_TIMEOUT: /)
    expect(text).toContain('timeout_seconds')
  })

  test('waits for the default time-out, or for the given one', async () => {
    const waits: number[] = []
    await bench.user[type].subscribe('timed', {}, ({ deadline, timestamp }) => {
      waits.push(deadline - timestamp)
      return {}
    })
    await bench.call(tool, { channel: 'timed', body: '' })
    await bench.call(tool, { channel: 'timed', body: '', timeout_seconds: 3600 })
    expect(waits).toEqual([type === 'commands' ? 10_000 : 30_000, 3_600_000])
  })

  test('M11 - a subscriber that comes while the request waits gets it', async () => {
    const call = bench.call(tool, { channel: 'latecomer', body: '', timeout_seconds: 60 })
    await bench.user[type].subscribe('latecomer', {}, () => ({}))
    expect((await call).isError).toBe(false)
  })

  test('M6 - reports the reason of its wait', async () => {
    await bench.user[type].subscribe('progress', {}, () => ({}))
    await bench.call(tool, { channel: 'progress', body: '' })
    const what = type === 'commands' ? 'command' : 'query'
    expect(bench.progress).toContain(`waiting for the answer to the ${what} on channel "progress"`)
  })

  test('a cancelled wait says that the request may have been received', async () => {
    const controller = new AbortController()
    const received = Promise.withResolvers<AbortSignal>()
    await bench.user[type].subscribe('slow', {}, ({ signal }) => {
      received.resolve(signal)
      return new Promise(() => {})
    })
    const call = bench.call(tool, { channel: 'slow', body: '' }, controller.signal)
    const subscriberSide = await received.promise
    controller.abort(new Error('shutting down'))
    const { text, isError } = await call
    expect(isError).toBe(true)
    expect(text).toMatch(/^CANCELLED: /)
    expect(subscriberSide.aborted).toBe(true)
  })

  test('C4 - a body over the limit is a tool error that names it', async () => {
    const limit = bench.broker.engine.limits.maxMessageBytes
    const { text, isError } = await bench.call(tool, { channel: 'large', body: 'x'.repeat(limit + 1) })
    expect(isError).toBe(true)
    expect(text).toContain('MESSAGE_TOO_LARGE')
  })
})

describe('tools - hosts that show only text', () => {
  test('M10 - the metadata, the tags and the encoding of a reply are in a second text', async () => {
    const reply = { body: new Uint8Array([0xff]), metadata: 'v2', tags: { unit: 'EUR' } }
    await bench.user.queries.subscribe('bytes', {}, () => reply)
    const { text, hint, structuredContent } = await bench.call('query_send', { channel: 'bytes', body: 'x' })
    expect(text).toBe('/w==')
    expect(hint).toBe(
      'The reply is not UTF-8 text, so it is shown as base64.\nIts metadata: v2\nIts tags: {"unit":"EUR"}',
    )
    const { body: _body, ...others } = reply
    expect(structuredContent).toEqual({ reply: '/w==', body_encoding: 'base64', ...others })
  })

  test('M10 - the counts of channel_info are in a second text', async () => {
    await bench.user.queues.send('counted', { body: 'x' })
    await bench.user.eventsStore.publish('counted', { body: 'x' })
    const queue = await bench.call('channel_info', { channel: 'counted', type: 'queues' })
    expect(queue.hint).toBe('Also: waiting 1, delayed 0, in_flight 0, dead_lettered 0.')
    const store = await bench.call('channel_info', { channel: 'counted', type: 'events_store' })
    expect(store.hint).toBe('Also: first_sequence 1, last_sequence 1.')
  })
})
