import { Buffer } from 'node:buffer'

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

import { DEFAULT_MAX_ANSWER_BYTES } from '../src/tools/answer-size.ts'
import type { ToolBench } from './tool-bench.ts'
import { openToolBench } from './tool-bench.ts'

let bench: ToolBench

beforeAll(async () => {
  bench = await openToolBench()
})

afterAll(() => bench[Symbol.asyncDispose]())

const bodies = (messages: unknown) => (messages as { body: string }[]).map(({ body }) => body)

describe('tools - queue_send', () => {
  test('TOOL-1, M10 - confirms naming the queue, and says where the message is', async () => {
    const first = await bench.call('queue_send', { channel: 'orders.eu', body: 'one' })
    const sent = { text: 'Message sent to queue "orders.eu".', isError: false }
    const content = { channel: 'orders.eu', id: expect.any(String), sequence: 1, duplicate: false }
    const hint = 'Queue "orders.eu" did not exist; this call created it. channel_list shows the others.'
    expect(first).toEqual({ ...sent, hint, structuredContent: { ...content, note: hint } })
    const second = await bench.call('queue_send', { channel: 'orders.eu', body: 'two' })
    expect(second).toEqual({ ...sent, structuredContent: { ...content, sequence: 2 } })
  })

  test('TOOL-2 - a delayed message is invisible until its time, and the confirmation states this', async () => {
    const { text } = await bench.call('queue_send', { channel: 'delayed', body: 'later', delay_seconds: 3600 })
    expect(text).toContain('3600 s')
    expect(await bench.json('queue_peek', { channel: 'delayed', max_messages: 1 })).toEqual([])
    expect((await bench.engine.channels.info('queues', 'delayed'))?.queue).toMatchObject({ waiting: 0, delayed: 1 })
  })

  test('TOOL-2 - a delayed message is delivered after its delay', async () => {
    const sent = Date.now()
    await bench.call('queue_send', { channel: 'delayed.shortly', body: 'soon', delay_seconds: 1 })
    const args = { channel: 'delayed.shortly', max_messages: 1, wait_timeout_seconds: 60 }
    expect(bodies(await bench.json('queue_receive', args))).toEqual(['soon'])
    expect(Date.now() - sent).toBeGreaterThanOrEqual(990)
  })

  test('TOOL-3 - an expired message is removed', async () => {
    await bench.call('queue_send', { channel: 'expiring', body: 'short', expiration_seconds: 1 })
    await bench.call('queue_send', { channel: 'expiring', body: 'long', expiration_seconds: 3600 })
    await expect
      .poll(() => bench.json('queue_peek', { channel: 'expiring', max_messages: 10 }).then(bodies), { timeout: 20_000 })
      .toEqual(['long'])
    const [message] = await bench.user.queues.peek('expiring')
    expect(message!.expiresAt - message!.timestamp).toBe(3600_000)
  })

  test('TOOL-4, M9, C2 - a message goes to its dead-letter queue after its last receive', async () => {
    const dead_letter_queue = 'dead.graves'
    await bench.call('queue_send', { channel: 'dead', body: 'poison', max_receive_count: 1, dead_letter_queue })
    const { settlement } = await bench.call('queue_receive', { channel: 'dead', max_messages: 1 })
    await settlement?.rollback()
    expect(await bench.json('queue_peek', { channel: 'dead', max_messages: 1 })).toEqual([])
    expect(await bench.json('queue_peek', { channel: dead_letter_queue, max_messages: 1 })).toMatchObject([
      { body: 'poison', tags: { dlq_source: 'dead', dlq_receive_count: '1', dlq_reason: expect.any(String) } },
    ])
  })

  test('M9 - dead-lettering needs both arguments: one alone has no effect', async () => {
    await bench.call('queue_send', { channel: 'alone', body: 'a', max_receive_count: 1 })
    await bench.call('queue_send', { channel: 'alone', body: 'b', dead_letter_queue: 'alone.graves' })
    for (const _ of [1, 2, 3]) {
      const { text, settlement } = await bench.call('queue_receive', { channel: 'alone', max_messages: 2 })
      expect(bodies(JSON.parse(text))).toEqual(['a', 'b'])
      await settlement?.rollback()
    }
    expect(await bench.engine.channels.info('queues', 'alone.graves')).toBeUndefined()
  })

  test('M10 - the result says when a dead-lettering argument has no effect without the other', async () => {
    const channel = 'halves'
    const send = (args: object) => bench.call('queue_send', { channel, body: 'a', ...args })
    const count = await send({ max_receive_count: 2 })
    expect(count.text).toMatch(
      /^Message sent to queue "halves"\. max_receive_count has no effect without dead_letter_queue/,
    )
    expect(count.structuredContent).toMatchObject({
      warning: expect.stringMatching(/^max_receive_count has no effect/),
    })
    const queue = await send({ dead_letter_queue: 'other', max_receive_count: 0 })
    expect(queue.text).toContain('dead_letter_queue has no effect without max_receive_count')
    expect(queue.structuredContent).toMatchObject({
      warning: expect.stringMatching(/^dead_letter_queue has no effect/),
    })
    for (const args of [{}, { max_receive_count: 1, dead_letter_queue: 'other' }]) {
      const { text, structuredContent } = await send(args)
      expect(text).toBe('Message sent to queue "halves".')
      expect(structuredContent).not.toHaveProperty('warning')
    }
  })

  test('C5 - a repeated message_id is reported as a duplicate, and stored once for each channel', async () => {
    await bench.user.channels.create('queues', 'twice')
    const args = { channel: 'twice', body: 'b', tags: { message_id: 'order-1' } }
    const first = await bench.call('queue_send', args)
    const second = await bench.call('queue_send', args)
    const elsewhere = await bench.call('queue_send', { ...args, channel: 'twice.other' })
    expect(first.structuredContent).toMatchObject({ duplicate: false, sequence: 1 })
    expect(second.structuredContent).toEqual({ ...first.structuredContent, duplicate: true })
    expect(second.text).toContain('"twice"')
    expect(elsewhere.structuredContent).toMatchObject({ duplicate: false })
    expect(bodies(await bench.json('queue_peek', { channel: 'twice', max_messages: 10 }))).toEqual(['b'])
  })

  test('C4 - a body at the limit passes, one byte more is a tool error that names the limit', async () => {
    const limit = bench.broker.engine.limits.maxMessageBytes
    const body = 'x'.repeat(limit)
    expect((await bench.call('queue_send', { channel: 'large', body })).isError).toBe(false)
    const [message] = (await bench.json('queue_receive', { channel: 'large', max_messages: 1 })) as { body: string }[]
    expect(message!.body === body).toBe(true)
    const { text, isError } = await bench.call('queue_send', { channel: 'large', body: `${body}x` })
    expect(isError).toBe(true)
    expect(text).toMatch(new RegExp(`^MESSAGE_TOO_LARGE: .*${limit + 1}.*${limit}`))
  })

  test('a body of 0 bytes is a message', async () => {
    await bench.call('queue_send', { channel: 'empty', body: '' })
    expect(await bench.json('queue_receive', { channel: 'empty', max_messages: 1 })).toEqual([
      { body: '', metadata: '', tags: {} },
    ])
  })
})

describe('tools - queue_receive', () => {
  test('TOOL-6, SHAPE-1 - returns the messages in order and removes them once the answer has arrived', async () => {
    await bench.call('queue_send', { channel: 'work', body: 'a', metadata: 'text/plain', tags: { n: '1' } })
    await bench.call('queue_send', { channel: 'work', body: 'b' })
    const { text, structuredContent, settlement } = await bench.call('queue_receive', {
      channel: 'work',
      max_messages: 5,
    })
    const messages = [
      { body: 'a', metadata: 'text/plain', tags: { n: '1' } },
      { body: 'b', metadata: '', tags: {} },
    ]
    expect(JSON.parse(text)).toEqual(messages)
    expect(structuredContent).toEqual({ messages })
    await settlement?.commit()
    expect((await bench.engine.channels.info('queues', 'work'))?.queue).toMatchObject({ waiting: 0, inFlight: 0 })
  })

  test('M14 - the messages of an answer return to their place after a rollback', async () => {
    for (const body of ['a', 'b', 'c']) await bench.call('queue_send', { channel: 'back', body })
    const { settlement } = await bench.call('queue_receive', { channel: 'back', max_messages: 2 })
    await settlement?.rollback()
    expect(bodies(await bench.json('queue_receive', { channel: 'back', max_messages: 3 }))).toEqual(['a', 'b', 'c'])
  })

  test('M14 - the lease is much longer than the settlement, and only the caller may settle', async () => {
    await bench.call('queue_send', { channel: 'leased', body: 'a' })
    const receive = vi.spyOn(bench.engine.queues, 'receive')
    await bench.json('queue_receive', { channel: 'leased', max_messages: 7, wait_timeout_seconds: 3 })
    const options = receive.mock.lastCall?.[1]
    await bench.call('queue_send', { channel: 'leased', body: 'b' })
    await bench.json('queue_receive', { channel: 'leased', max_messages: 1 })
    expect(receive.mock.lastCall?.[1]).toMatchObject({ waitMs: 5000 })
    receive.mockRestore()
    expect(options).toMatchObject({
      maxMessages: 7,
      waitMs: 3000,
      clientId: 'anonymous',
      maxBytes: DEFAULT_MAX_ANSWER_BYTES,
    })
    expect(options?.leaseMs).toBeGreaterThanOrEqual(60_000)
  })

  test('max_messages bounds the answer', async () => {
    for (const body of ['a', 'b', 'c']) await bench.call('queue_send', { channel: 'three', body })
    expect(bodies(await bench.json('queue_receive', { channel: 'three', max_messages: 2 }))).toEqual(['a', 'b'])
    expect(bodies(await bench.json('queue_receive', { channel: 'three', max_messages: 2 }))).toEqual(['c'])
  })

  test('TOOL-7, M9 - waits for the first message and returns as soon as it arrives', async () => {
    const waiting = bench.json('queue_receive', { channel: 'soon', max_messages: 10, wait_timeout_seconds: 60 })
    await expect.poll(() => bench.progress).toContain('waiting for a message in queue "soon"')
    await bench.call('queue_send', { channel: 'soon', body: 'here' })
    expect(bodies(await waiting)).toEqual(['here'])
  })

  test('TOOL-8 - an empty or unknown queue returns an empty array with nothing to acknowledge', async () => {
    const args = { channel: 'nowhere', max_messages: 1, wait_timeout_seconds: 1 }
    const { text, isError, settlement } = await bench.call('queue_receive', args)
    expect({ text, isError, settlement }).toEqual({ text: '[]', isError: false, settlement: undefined })
    expect(await bench.engine.channels.info('queues', 'nowhere')).toBeUndefined()
  })

  test('M5 - a call that is cut off while it waits takes nothing', async () => {
    const gone = new AbortController()
    const args = { channel: 'gone', max_messages: 1, wait_timeout_seconds: 60 }
    const waiting = bench.call('queue_receive', args, gone.signal)
    await expect.poll(() => bench.progress).toContain('waiting for a message in queue "gone"')
    gone.abort(new Error('the client went away'))
    expect(await waiting).toMatchObject({ text: '[]', isError: false })
    await bench.call('queue_send', { channel: 'gone', body: 'kept' })
    expect(bodies(await bench.json('queue_receive', args))).toEqual(['kept'])
  })

  test('M5 - a call that is cancelled while its message arrives returns the message', async () => {
    const args = { channel: 'race', max_messages: 1, wait_timeout_seconds: 60 }
    for (let round = 0; round < 50; round++) {
      const gone = new AbortController()
      const waiting = bench.call('queue_receive', args, gone.signal)
      const sent = bench.call('queue_send', { channel: 'race', body: String(round) })
      if (round % 2 === 0) await Promise.race([sent, waiting])
      gone.abort(new Error('the client went away'))
      const outcome = await waiting
      await outcome.settlement?.rollback()
      await sent
      expect(bodies(await bench.json('queue_receive', args))).toEqual([String(round)])
    }
  })

  test('M5 - a call whose client has already disconnected receives nothing', async () => {
    await bench.call('queue_send', { channel: 'late', body: 'kept' })
    const { text } = await bench.call('queue_receive', { channel: 'late', max_messages: 1 }, AbortSignal.abort())
    expect(text).toBe('[]')
    expect(bodies(await bench.json('queue_peek', { channel: 'late', max_messages: 1 }))).toEqual(['kept'])
  })

  test('two receivers that race for one message: one has it', async () => {
    const receive = () => bench.json('queue_receive', { channel: 'one', max_messages: 1, wait_timeout_seconds: 60 })
    const both = [receive(), receive()]
    await bench.call('queue_send', { channel: 'one', body: 'only' })
    expect(bodies(await Promise.race(both))).toEqual(['only'])
    // The other one still waits, and gets the next message.
    await bench.call('queue_send', { channel: 'one', body: 'next' })
    expect((await Promise.all(both)).flatMap(bodies).toSorted()).toEqual(['next', 'only'])
  })

  test('M10 - a body that is not UTF-8 is base64, with body_encoding', async () => {
    const bytes = Uint8Array.of(0xff, 0, 0x61, 0xc3)
    await bench.user.queues.send('binary', { body: bytes })
    const base64 = { body: Buffer.from(bytes).toString('base64'), body_encoding: 'base64', metadata: '', tags: {} }
    expect(await bench.json('queue_peek', { channel: 'binary', max_messages: 1 })).toEqual([base64])
    expect(await bench.json('queue_receive', { channel: 'binary', max_messages: 1 })).toEqual([base64])
  })

  test('one answer holds a bounded number of bytes, and the rest stays in the queue', async () => {
    const part = new Uint8Array(bench.broker.engine.limits.maxMessageBytes - 1024).fill(0x61)
    const enough = Math.ceil(DEFAULT_MAX_ANSWER_BYTES / part.length) + 1
    for (let i = 0; i < enough; i++) await bench.user.queues.send('heavy', { body: part })
    for (const tool of ['queue_peek', 'queue_receive']) {
      const messages = await bench.json(tool, { channel: 'heavy', max_messages: 100 })
      expect((messages as unknown[]).length).toBeLessThan(enough)
      expect((messages as unknown[]).length).toBeGreaterThan(0)
    }
    expect((await bench.engine.channels.info('queues', 'heavy'))?.queue?.waiting).toBeGreaterThan(0)
  })
})

describe('tools - queue_peek', () => {
  test('TOOL-10, SHAPE-1 - leaves the messages where they are', async () => {
    await bench.call('queue_send', { channel: 'seen', body: 'a', metadata: 'm', tags: { k: 'v' } })
    for (const _ of [1, 2]) {
      const { text, structuredContent } = await bench.call('queue_peek', { channel: 'seen', max_messages: 10 })
      expect(JSON.parse(text)).toEqual([{ body: 'a', metadata: 'm', tags: { k: 'v' } }])
      expect(structuredContent).toEqual({ messages: JSON.parse(text) })
    }
    expect(bodies(await bench.json('queue_receive', { channel: 'seen', max_messages: 1 }))).toEqual(['a'])
  })

  test('TOOL-11 - an empty array for a queue that does not exist, and it is not created', async () => {
    expect(await bench.json('queue_peek', { channel: 'unseen', max_messages: 1 })).toEqual([])
    expect(await bench.engine.channels.info('queues', 'unseen')).toBeUndefined()
  })
})
