import { createServer } from 'node:http'

import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

import type { WorkHandler } from '../src/index.ts'
import { connect, retryAfter } from '../src/index.ts'
import { Gate } from './gate.ts'
import { serverForFile } from './server.ts'

const file = serverForFile({ onError: () => {} })
const { client } = file

test('worker - several messages are worked on at the same time, and acknowledged', async () => {
  const sb = client()
  const queue = sb.queue<number>('parallel')
  for (let n = 0; n < 6; n++) await queue.send(n)
  const gate = new Gate()
  const seen: number[] = []
  let most = 0
  const pool = queue.work({ concurrency: 3 }, async (n, { receives, channel }) => {
    expect([receives, channel]).toEqual([1, 'parallel'])
    seen.push(n)
    most = Math.max(most, pool.active)
    if (seen.length === 3) gate.open()
    await gate.opened
  })
  await until(() => seen.length === 6)
  expect(await pool.drain()).toBe(0)
  await pool.closed
  expect(seen.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5])
  expect(most).toBe(3)
  expect(await queue.receive({ wait: 0 }).next()).toMatchObject({ done: true })
})

test('worker - the lease is renewed while the handler runs', async () => {
  const sb = client()
  const queue = sb.queue('long')
  await queue.send('work')
  const gate = new Gate()
  let aborted = false
  let runs = 0
  const pool = queue.work({ lease: '3s' }, async (_data, { signal }) => {
    runs++
    await gate.opened
    aborted = signal.aborted
  })
  await until(() => runs === 1)
  // Another receiver waits for longer than the lease.
  expect(await queue.receive({ wait: '4s' }).next()).toMatchObject({ done: true })
  gate.open()
  await pool.drain()
  expect([runs, aborted]).toEqual([1, false])
  expect(await queue.peek()).toEqual([])
})

test('worker - a message whose handler failed is redelivered after the delay', async () => {
  const errors: unknown[] = []
  const queue = client().queue('flaky')
  await queue.send('work')
  const times: number[] = []
  const pool = queue.work(
    { backoff: (receives) => receives * 1000, onError: (error) => errors.push(error) },
    (_data, { receives }) => {
      times.push(performance.now())
      if (receives < 3) throw new Error(`attempt ${receives}`)
    },
  )
  await until(() => times.length === 3)
  await pool.drain()
  const [first = 0, second = 0, third = 0] = times
  expect(second - first).toBeGreaterThan(900)
  expect(third - second).toBeGreaterThan(1900)
  expect(errors).toEqual([new Error('attempt 1'), new Error('attempt 2')])
  expect(await queue.peek()).toEqual([])
})

test('worker - a message that no handler can process moves to the dead-letter queue', async () => {
  const sb = client()
  await sb.queue('doomed').send('work', { maxReceives: 2, deadLetter: 'doomed.dead' })
  const pool = sb.queue('doomed').work({ backoff: () => 0 }, () => {
    throw new Error('never')
  })
  await expect.poll(() => sb.queue('doomed.dead').peek()).toMatchObject([{ tags: { dlq_receive_count: '2' } }])
  await pool.drain()
})

test('worker - a handler rejects a message that no attempt can process', async () => {
  const sb = client()
  await sb.queue('judged').send('bad', { maxReceives: 9, deadLetter: 'judged.dead' })
  await sb.queue('judged').send('good')
  const errors: unknown[] = []
  const done: unknown[] = []
  const options = { backoff: 'queue', onError: (error: unknown) => errors.push(error) } as const
  const pool = sb.queue('judged').work(options, async (data, work) => {
    if (data === 'bad' || work.receives === 1) await work.reject()
    done.push(data)
  })
  await until(() => done.length === 2)
  expect(await pool.drain()).toBe(0)
  // Without a dead-letter queue the reject fails, and with it the attempt.
  expect([done, errors]).toMatchObject([['bad', 'good'], [{ code: 'NO_DEAD_LETTER_QUEUE' }]])
  const [dead] = await sb.queue('judged.dead').peek()
  expect(dead).toMatchObject({ data: 'bad', tags: { dlq_reason: 'rejected' } })
  expect(await sb.queue('judged').peek()).toEqual([])
})

test('worker - an aborted signal lets the handlers finish', async () => {
  const abort = new AbortController()
  const queue = client().queue('draining')
  for (let n = 0; n < 2; n++) await queue.send(n)
  const gate = new Gate()
  const seen: unknown[] = []
  const pool = queue.work({ signal: abort.signal }, async (n) => {
    seen.push(n)
    await gate.opened
  })
  await until(() => seen.length === 1)
  abort.abort()
  gate.open()
  await pool.closed
  expect(seen).toEqual([0])
  expect(await queue.peek({ max: 9 })).toMatchObject([{ data: 1, receives: 0 }])
})

test('worker - a drain that runs out of time aborts the handlers and returns their messages', async () => {
  const queue = client().queue('stuck')
  await queue.send('work')
  let reason: unknown
  const gate = new Gate()
  const pool = queue.work({ lease: '1h' }, async (_data, { signal }) => {
    signal.addEventListener('abort', () => {
      reason = signal.reason
    })
    gate.open()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })
  await gate.opened
  expect(await pool.drain('10ms')).toBe(1)
  expect(reason).toMatchObject({ code: 'CLOSED' })
  for await (const message of queue.receive()) {
    expect(message).toMatchObject({ data: 'work', receives: 2 })
    await message.ack()
  }
})

test('worker - a handler that ignores its signal does not keep the client open', async () => {
  const sb = connect(file.server.url)
  await sb.queue('deaf').send('work')
  const gate = new Gate()
  sb.queue('deaf').work({ drainTimeout: '10ms' }, async () => {
    gate.open()
    await new Promise(() => {})
  })
  await gate.opened
  await sb.close()
  expect(await client().queue('deaf').peek()).toMatchObject([{ data: 'work', receives: 1 }])
})

test('worker - a lost lease aborts the signal of the handler', async () => {
  const errors: unknown[] = []
  // The server gets no renewal.
  const sb = client({
    fetch: async (url, init) => {
      if (url.includes('/queue/extend')) throw new TypeError('the network is down')
      return fetch(url, init)
    },
  })
  const queue = sb.queue('unrenewed')
  await queue.send('work')
  let reason: unknown
  const pool = queue.work(
    { lease: '1s', onError: (error) => errors.push(error) },
    async (_data, { signal, receives }) => {
      if (receives > 1) return
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      reason = signal.reason
    },
  )
  await until(() => reason !== undefined)
  expect(reason).toMatchObject({ code: 'LEASE_LOST' })
  await until(() => errors.some((error) => error === reason))
  await pool.drain()
})

test('worker - an error that no attempt cures ends the pool', async () => {
  const pool = client()
    .queue('_AGENTS_.x')
    .work(() => {})
  await expect(pool.closed).rejects.toMatchObject({ code: 'CHANNEL_RESERVED' })
})

test('worker - a closing client drains its workers', async () => {
  const sb = connect(file.server.url)
  await sb.queue('closing').send('work')
  const gate = new Gate()
  let done = false
  sb.queue('closing').work(async () => {
    gate.open()
    await new Promise((resolve) => setTimeout(resolve, 100))
    done = true
  })
  await gate.opened
  await sb.close()
  expect(done).toBe(true)
  expect(await client().queue('closing').peek()).toEqual([])
  await expect(sb.queue('closing').send('late')).rejects.toMatchObject({ code: 'CLOSED' })
})

test('worker - a service that is busy pauses the queue, and no message is lost or dead-lettered', async () => {
  const sb = client()
  const queue = sb.queue<number>('busy')
  for (let n = 0; n < 12; n++) await queue.send(n, { maxReceives: 3, deadLetter: 'busy.dead' })
  const requests: number[] = []
  let busyUntil = 0
  // The service accepts four requests, then refuses all for a second.
  const service = createServer((_request, response) => {
    const now = Date.now()
    requests.push(now)
    if (requests.length === 5) busyUntil = now + 1_000
    if (now < busyUntil) response.writeHead(429, { 'Retry-After': '1' })
    response.end()
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void service.close())
  const address = service.address()
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  const done: number[] = []
  const handler: WorkHandler<number> = async (n, work) => {
    const answer = await fetch(url)
    if (answer.status === 429) return work.pause(retryAfter(answer) ?? '30s')
    done.push(n)
  }
  const pools = [
    queue.work({ concurrency: 2 }, handler),
    client().queue<number>('busy').work({ concurrency: 2 }, handler),
  ]
  await until(() => done.length === 12)
  for (const pool of pools) await pool.drain()
  expect(done.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, n) => n))
  // The requests that were under way with the refused one, and none until the end of the pause.
  const refused = requests.filter((at) => at >= busyUntil - 1_000 && at < busyUntil)
  expect(refused.length).toBeLessThanOrEqual(4)
  expect(await sb.queue('busy.dead').peek()).toEqual([])
  expect(await queue.peek()).toEqual([])
})

const of = (text: string) => retryAfter(new Response(null, { headers: { 'Retry-After': text } }))

test('worker - Retry-After is read in seconds and as a date', () => {
  expect(of('30')).toBe(30_000)
  expect(of(new Date(Date.now() + 60_000).toUTCString())).toBeGreaterThan(58_000)
  expect(of(new Date(0).toUTCString())).toBe(0)
  expect(of('soon')).toBeUndefined()
  expect(retryAfter(new Response())).toBeUndefined()
})
