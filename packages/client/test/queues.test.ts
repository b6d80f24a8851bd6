// cspell:ignore unstub
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test, vi } from 'vitest'

import { connect } from '../src/index.ts'
import { serverForFile } from './server.ts'

const { client } = serverForFile()

test('queues - data arrives unchanged: JSON, text, bytes and an empty body', async () => {
  const queue = client({ source: '/shop' }).queue('forms')
  const bytes = Uint8Array.of(0, 255, 1)
  for (const data of [{ n: 1, list: [null, 'ä'] }, 'text', '{"not":"parsed"}', bytes, 7, undefined])
    await queue.send(data)
  const received = []
  for await (const message of queue.receive({ max: 10 })) {
    received.push(message.data)
    expect(message).toMatchObject({ channel: 'forms', source: '/shop', receives: 1 })
    expect(await message.ack()).toBe(true)
  }
  expect(received).toEqual([{ n: 1, list: [null, 'ä'] }, 'text', '{"not":"parsed"}', bytes, 7, undefined])
})

test('queues - a send with an id is stored once, and says so', async () => {
  const queue = client().queue('once')
  const first = await queue.send({ n: 1 }, { id: 'order-7' })
  expect(first).toEqual({ id: 'order-7', sequence: first.sequence, duplicate: false })
  expect(await queue.send({ n: 1 }, { id: 'order-7' })).toEqual({ ...first, duplicate: true })
  expect(await queue.peek({ max: 10 })).toMatchObject([{ id: 'order-7', data: { n: 1 } }])
})

test('queues - a send whose answer is lost is repeated, and stored once', async () => {
  let attempts = 0
  const fetchOnce: typeof fetch = async (url, init) => {
    const response = await fetch(url, init)
    await response.clone().text()
    if (++attempts === 1) throw new TypeError('the connection broke')
    return response
  }
  const sb = client({ fetch: (url, init) => fetchOnce(url, init) })
  expect(await sb.queue('lost-answer').send({ n: 1 })).toMatchObject({ duplicate: true })
  expect(attempts).toBe(2)
  expect(await sb.queue('lost-answer').peek({ max: 10 })).toHaveLength(1)
})

test('queues - messages that the loop did not reach return to the queue', async () => {
  const queue = client().queue('left')
  for (let n = 0; n < 3; n++) await queue.send(n)
  for await (const message of queue.receive({ max: 3, lease: '1h' })) {
    await message.ack()
    break
  }
  const again = []
  for await (const message of queue.receive({ max: 3 })) {
    again.push(message.data)
    await message.ack()
  }
  expect(again).toEqual([1, 2])
})

test('queues - a nack can pause the queue for its delay', async () => {
  const queue = client().queue('resting')
  for (let n = 0; n < 2; n++) await queue.send(n)
  for await (const message of queue.receive()) {
    await expect(message.nack({ pauseQueue: true })).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
    expect(await message.nack({ delay: '1s', pauseQueue: true })).toBe(true)
  }
  expect(await queue.receive({ wait: 0 }).next()).toMatchObject({ done: true })
  expect(await queue.receive({ wait: '10s' }).next()).toMatchObject({ value: { receives: expect.any(Number) } })
})

test('queues - a message that failed too often moves to its dead-letter queue', async () => {
  const sb = client()
  await sb.queue('jobs').send('fails', { maxReceives: 1, deadLetter: 'jobs.dead' })
  for await (const message of sb.queue('jobs').receive()) await message.nack()
  await until(async () => (await sb.queue('jobs.dead').peek()).length === 1)
  const [dead] = await sb.queue('jobs.dead').peek()
  expect(dead).toMatchObject({ data: 'fails', tags: { dlq_source: 'jobs' } })
  expect(await sb.queue('jobs.dead').purge()).toBe(1)
})

test('queues - a message is rejected for good, or not without a dead-letter queue', async () => {
  const sb = client()
  await sb.queue('judged').send('bad', { maxReceives: 9, deadLetter: 'judged.dead' })
  for await (const message of sb.queue('judged').receive()) expect(await message.reject()).toBe(true)
  const [dead] = await sb.queue('judged.dead').peek()
  expect(dead).toMatchObject({ data: 'bad', tags: { dlq_source: 'judged', dlq_reason: 'rejected' } })
  await sb.queue('judged').send('kept')
  for await (const message of sb.queue('judged').receive()) {
    await expect(message.reject()).rejects.toMatchObject({ code: 'NO_DEAD_LETTER_QUEUE', status: 409 })
    expect(await message.ack()).toBe(true)
  }
})

test('queues - a nack with a delay returns the message later, and ends the receipt', async () => {
  const queue = client().queue('paused')
  await queue.send('x')
  for await (const message of queue.receive()) {
    expect(await message.nack({ delay: '2s' })).toBe(true)
    expect(await message.ack()).toBe(false)
  }
  const since = performance.now()
  for await (const message of queue.receive({ wait: '20s' })) {
    expect(message.receives).toBe(2)
    await message.ack()
  }
  expect(performance.now() - since).toBeGreaterThan(1_700)
})

test('queues - errors have a code, a status and problems', async () => {
  const sb = client()
  await expect(sb.queue('_AGENTS_.x').send(1)).rejects.toMatchObject({
    name: 'SignalboxError',
    code: 'CHANNEL_RESERVED',
  })
  await expect(sb.queue('a b ').peek()).rejects.toMatchObject({
    code: 'CHANNEL_INVALID',
    status: 400,
    retryable: false,
  })
  await expect(sb.queue('x').peek({ max: 5000 })).rejects.toMatchObject({
    code: 'PARAMETER_INVALID',
    problems: [{ name: 'max_messages' }],
  })
  await expect(sb.queue('x').send(1, { maxReceives: 3 })).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  await expect(connect('http://127.0.0.1:1', { retries: 0 }).queue('x').peek()).rejects.toMatchObject({
    code: 'UNREACHABLE',
    retryable: true,
  })
})

test('queues - a send to a stopped server fails after the time of retryFor', async () => {
  const begun = performance.now()
  const sends = [{ n: 1 }, new Uint8Array([1])].map((data) =>
    connect('http://127.0.0.1:2', { retryFor: '400ms' }).queue('x').send(data),
  )
  const failure = { status: 'rejected', reason: { code: 'UNREACHABLE', retryable: true } }
  expect(await Promise.allSettled(sends)).toMatchObject([failure, failure])
  expect(performance.now() - begun).toBeGreaterThan(390)
  expect(() => connect('http://127.0.0.1:2', { retryFor: '2m' })).toThrow('0 to 90 seconds')
})

test('queues - an aborted signal ends a receive', async () => {
  const abort = new AbortController()
  const receiving = client().queue('empty').receive({ wait: '60s', signal: abort.signal }).next()
  abort.abort(new Error('enough'))
  await expect(receiving).rejects.toThrow('enough')
})

test('queues - an old runtime is named in one line, before the first call', () => {
  vi.stubGlobal('crypto', undefined)
  onTestFinished(() => void vi.unstubAllGlobals())
  expect(() => connect('http://127.0.0.1:2')).toThrow('@signalbox/client needs Node 20.3')
})
