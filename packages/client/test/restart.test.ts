import { setTimeout as pause } from 'node:timers/promises'

import { until } from '@signalbox/testkit/until'
import { expect, test, vi } from 'vitest'

import { serverForFile } from './server.ts'

// Each test waits for a server to start again, and for its clients to notice.
vi.setConfig({ testTimeout: 90_000 })

/** One server for the file: each test restarts it, and uses channels of its own. */
const file = serverForFile({ onError: () => {} })
const { client } = file

const NUMBERS = Array.from({ length: 60 }, (_, n) => n)

/** Sends the numbers one after the other, and kills the server in the middle. */
async function killedMidway(send: (n: number) => Promise<unknown>): Promise<void> {
  let restarted: Promise<void> | undefined
  for (const n of NUMBERS) {
    if (n === 30) restarted = file.server.stop('SIGKILL').then(() => file.server.start())
    await send(n)
  }
  await restarted
}

test('restart - a projection handles every event once and in order when the server is killed', async () => {
  const sb = client()
  const store = sb.store<number>('sales')
  let checkpoint: number | undefined
  const handled: number[] = []
  const projection = store.project(
    {
      load: () => checkpoint,
      save: (sequence) => {
        checkpoint = sequence
      },
    },
    ({ data }) => handled.push(data),
  )
  await projection.ready
  await killedMidway((n) => store.append(n))
  await until(() => handled.length >= NUMBERS.length)
  expect(handled).toEqual(NUMBERS)
  expect(checkpoint).toBe(NUMBERS.length)
})

test('restart - a reader of an events store continues at its position', async () => {
  const sb = client()
  const store = sb.store<number>('history')
  const seen: number[] = []
  const reading = (async () => {
    for await (const { data } of store.read({ follow: true })) if (seen.push(data) === NUMBERS.length) break
  })()
  await killedMidway((n) => store.append(n))
  await reading
  expect(seen).toEqual(NUMBERS)
})

test('restart - workers lose no message, and every send is stored once', async () => {
  const sb = client()
  const queue = sb.queue<number>('jobs')
  const done = new Set<number>()
  const pool = queue.work({ concurrency: 4, lease: '1s' }, (n) => {
    done.add(n)
  })
  const sequences: number[] = []
  await killedMidway(async (n) => sequences.push((await queue.send(n)).sequence))
  await until(() => done.size === NUMBERS.length)
  // At most the messages that were under way come again.
  await until(async () => (await queue.peek()).length === 0 && pool.active === 0)
  await pool.drain()
  expect([...done].toSorted((a, b) => a - b)).toEqual(NUMBERS)
  expect(new Set(sequences).size).toBe(NUMBERS.length)
})

test.for(['SIGTERM', 'SIGKILL'] as const)(
  'restart - 300 sends while the server is down for 3 s after %s: none fails, none is stored twice',
  async (signal) => {
    const sb = client()
    const queue = sb.queue<number>(`sends.${signal}`)
    const failed: unknown[] = []
    let next = 0
    let restarted: Promise<void> | undefined
    const sender = async (): Promise<void> => {
      for (let n = next++; n < 300; n = next++) {
        restarted ??= n < 100 ? undefined : down(signal)
        await queue.send(n).catch((error: unknown) => failed.push(error))
      }
    }
    await Promise.all(Array.from({ length: 4 }, sender))
    await restarted
    expect(failed).toEqual([])
    const received: number[] = []
    for (let more = true; more;) {
      more = false
      for await (const message of queue.receive({ max: 100, wait: 0 })) {
        received.push(message.data)
        more = await message.ack()
      }
    }
    expect(received.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 300 }, (_, n) => n))
  },
)

/** Stops the server, and starts it again after three seconds: a restart takes that long. */
async function down(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  await file.server.stop(signal)
  await pause(3_000)
  await file.server.start()
}

test('restart - a message that a killed server delivers again waits for its earlier handler, whose signal aborts', async () => {
  const sb = client()
  const steps: string[] = []
  // Without the second delivery, the pool would notice the lost lease only at its next renewal, after 20 s.
  const pool = sb.queue('long').work({ concurrency: 2, lease: '60s' }, async (_data, { signal }) => {
    steps.push('begin')
    if (steps.length > 1) return
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    await new Promise((resolve) => setTimeout(resolve, 50))
    steps.push('end of the first')
  })
  await sb.queue('long').send('work')
  await until(() => steps.length === 1)
  await file.server.stop('SIGKILL')
  await file.server.start()
  await until(() => steps.length === 3)
  expect(steps).toEqual(['begin', 'end of the first', 'begin'])
  await pool.drain()
  expect(await sb.queue('long').peek()).toEqual([])
})

test('restart - two messages with the same id are worked on at the same time', async () => {
  const sb = client()
  const both = Promise.withResolvers<void>()
  let running = 0
  const pool = sb.queue('alike').work({ concurrency: 2 }, async () => {
    if (++running === 2) both.resolve()
    await both.promise
  })
  for (let n = 0; n < 2; n++) {
    const headers = { 'ce-specversion': '1.0', 'ce-id': 'same', 'ce-source': '/test', 'ce-type': 'test' }
    await fetch(`${file.server.url}/ce/queue/send?channel=alike&deduplicate=false`, { method: 'POST', headers })
  }
  await both.promise
  await until(() => pool.active === 0)
  await pool.drain()
  expect(await sb.queue('alike').peek()).toEqual([])
})

test('restart - event subscriptions and responders work again, and report the gap', async () => {
  const sb = client()
  const gaps: unknown[] = []
  const events: unknown[] = []
  await sb.events('orders').on(({ data }) => events.push(data), { onGap: (gap) => gaps.push(gap) }).ready
  await sb.answer('queries', 'time', () => 'half past nine').ready
  await sb.events('orders').publish('before')
  await until(() => events.length === 1)
  await file.server.stop('SIGKILL')
  await file.server.start()
  await until(() => gaps.length > 0)
  await sb.events('orders').publish('after')
  await until(() => events.length === 2)
  expect(events).toEqual(['before', 'after'])
  expect(gaps).toEqual([{ reason: 'reconnected', dropped: undefined }])
  expect(await sb.query('time', null, { timeout: '20s' })).toBe('half past nine')
})

test('restart - a server that shuts down hands its clients over to the next one', async () => {
  const sb = client()
  const seen: unknown[] = []
  const pool = sb.queue('letters').work((data) => seen.push(data))
  const subscription = sb.store('letters.log').on(({ data }) => seen.push(data), { from: 'first' })
  await subscription.ready
  await sb.queue('letters').send(1)
  await sb.store('letters.log').append(2)
  await until(() => seen.length === 2)
  await file.server.stop('SIGTERM')
  await file.server.start()
  await sb.queue('letters').send(3)
  await sb.store('letters.log').append(4)
  // A message whose acknowledgment the shutdown cut off comes again.
  await until(() => new Set(seen).size === 4)
  expect(new Set(seen)).toEqual(new Set([1, 2, 3, 4]))
  await pool.drain()
})
