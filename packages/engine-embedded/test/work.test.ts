import type { Broker, BrokerHandle, RetrySettings, WorkMessage } from '@signalbox/broker-core'
import { createBroker, LeaseLost } from '@signalbox/broker-core'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { expect, onTestFinished, test } from 'vitest'

import { openEmbeddedEngine } from '../src/index.ts'

const RETRY: RetrySettings = {
  max_receive_count: 0,
  dead_letter_queue: '',
  min_backoff_seconds: 0.1,
  max_backoff_seconds: 0.1,
  backoff_factor: 1,
  jitter: 0,
}

async function openCaller(): Promise<BrokerHandle> {
  return (await openBroker()).caller
}

async function openBroker(): Promise<{ broker: Broker; caller: BrokerHandle }> {
  const folder = await TemporaryFolder.create('work')
  const engine = await openEmbeddedEngine({ path: folder.path })
  onTestFinished(async () => {
    await engine.close()
    await folder[Symbol.asyncDispose]()
  })
  const { broker } = createBroker(engine)
  return { broker, caller: broker.as({ clientId: 'worker' }) }
}

async function stateOf({ channels }: BrokerHandle): Promise<readonly unknown[]> {
  const { queue } = await channels.info('queues', 'jobs')
  return [queue?.waiting, queue?.delayed, queue?.inFlight]
}

test('work - reads bodies, acknowledges, and works on several messages at a time', async () => {
  const caller = await openCaller()
  const seen: unknown[] = []
  const both = Promise.withResolvers<void>()
  await using pool = caller.queues.work('jobs', { concurrency: 2 }, async (message) => {
    seen.push(message.json())
    if (pool.active === 2) both.resolve()
    await both.promise
  })
  await caller.queues.send('jobs', { body: '{"n":1}' })
  await caller.queues.send('jobs', { body: new TextEncoder().encode('{"n":2}') })
  await both.promise
  expect(await pool.drain()).toBe(0)
  expect(seen).toEqual([{ n: 1 }, { n: 2 }])
  expect(await stateOf(caller)).toEqual([0, 0, 0])
})

test('work - a message whose handler throws is tried again after the backoff', async () => {
  const caller = await openCaller()
  const errors: unknown[] = []
  const times: number[] = []
  const second = Promise.withResolvers<number>()
  const options = { backoff: (receives: number) => receives * 300, onError: (error: unknown) => errors.push(error) }
  await using pool = caller.queues.work('jobs', options, (message: WorkMessage, { receives }) => {
    times.push(performance.now())
    if (receives === 1) throw new Error(message.text())
    second.resolve(receives)
  })
  await caller.queues.send('jobs', { body: 'not yet' })
  expect(await second.promise).toBe(2)
  await pool.drain()
  expect(errors).toEqual([new Error('not yet')])
  expect(times[1]! - times[0]!).toBeGreaterThan(250)
  expect(await stateOf(caller)).toEqual([0, 0, 0])
})

test('work - without a backoff the retry policy of the queue decides', async () => {
  const { caller, broker } = await openBroker()
  broker.settings.replace([{ type: 'queues', match: 'jobs', source: 'api', retry: RETRY }])
  const third = Promise.withResolvers<void>()
  await using _pool = caller.queues.work('jobs', { onError: () => {} }, (_message, { receives }) => {
    if (receives < 5) throw new Error('not yet')
    third.resolve()
  })
  const since = performance.now()
  await caller.queues.send('jobs', { body: 'x' })
  await third.promise
  // The delays of a pool alone take 15 s.
  expect(performance.now() - since).toBeLessThan(10_000)
  expect(performance.now() - since).toBeGreaterThan(380)
})

test('work - a handler rejects a message that no attempt can process', async () => {
  const { caller } = await openBroker()
  const errors: unknown[] = []
  await using pool = caller.queues.work('jobs', { onError: (error) => errors.push(error) }, async (_message, work) => {
    await work.reject()
    throw new Error('ignored')
  })
  await caller.queues.send('jobs', { body: 'x', deadLetterQueue: 'dead' })
  const [dead] = await caller.queues.receive('dead', { waitMs: 10_000 })
  expect(dead?.message.tags).toMatchObject({ dlq_source: 'jobs', dlq_reason: 'rejected', dlq_receive_count: '1' })
  await pool.drain()
  expect(errors).toEqual([new Error('ignored')])
  expect(await stateOf(caller)).toEqual([0, 0, 0])
})

test('work - a reject without a dead-letter queue fails, and the handler decides', async () => {
  const { caller } = await openBroker()
  const refused = Promise.withResolvers<unknown>()
  await using pool = caller.queues.work('jobs', async (_message, work) => {
    await work.reject().catch(refused.resolve)
  })
  await caller.queues.send('jobs', { body: 'x' })
  expect(await refused.promise).toMatchObject({ code: 'NO_DEAD_LETTER_QUEUE', details: { channel: 'jobs' } })
  await pool.drain()
  expect(await stateOf(caller)).toEqual([0, 0, 0])
})

test('work - a drain ends a handler that continues after a reject', async () => {
  const { caller } = await openBroker()
  const rejected = Promise.withResolvers<AbortSignal>()
  const pool = caller.queues.work('jobs', async (_message, work) => {
    await work.reject()
    rejected.resolve(work.signal)
    return new Promise(() => {})
  })
  await caller.queues.send('jobs', { body: 'x', deadLetterQueue: 'dead' })
  const signal = await rejected.promise
  await pool.drain('50ms')
  await pool.closed
  expect(signal.aborted).toBe(true)
  expect(await caller.queues.peek('dead')).toHaveLength(1)
})

test('work - the lease is renewed while the handler runs', async () => {
  const caller = await openCaller()
  let receives = 0
  let renewals = 0
  const done = Promise.withResolvers<void>()
  const extend = caller.queues.extend.bind(caller.queues)
  caller.queues.extend = async (receipts, leaseMs) => {
    const result = await extend(receipts, leaseMs)
    // A lease has three renewals in its time.
    if (++renewals === 4) done.resolve()
    return result
  }
  await using pool = caller.queues.work('jobs', { lease: '1500ms', concurrency: 2 }, async () => {
    receives++
    await done.promise
  })
  await caller.queues.send('jobs', { body: 'long' })
  await done.promise
  expect(await pool.drain()).toBe(0)
  expect(receives).toBe(1)
  expect(await stateOf(caller)).toEqual([0, 0, 0])
})

test('work - a lost lease aborts the signal', async () => {
  const caller = await openCaller()
  const errors: unknown[] = []
  const lost = Promise.withResolvers<unknown>()
  const options = { lease: 300, onError: (error: unknown) => errors.push(error) }
  await using _pool = caller.queues.work('jobs', options, async (_message, { receives, signal }) => {
    if (receives > 1) return
    signal.addEventListener('abort', () => lost.resolve(signal.reason))
    await lost.promise
    signal.throwIfAborted()
  })
  const { id } = await caller.queues.send('jobs', { body: 'x' })
  expect(id).toBeTypeOf('string')
  // Another part of the program settles the message.
  const extend = caller.queues.extend.bind(caller.queues)
  caller.queues.extend = async (receipts, leaseMs) => {
    await caller.queues.ack(receipts)
    return extend(receipts, leaseMs)
  }
  expect(await lost.promise).toBeInstanceOf(LeaseLost)
  await expect.poll(() => errors.length).toBe(1)
})

test('work - a drain that takes too long aborts the handlers, and returns their messages', async () => {
  const caller = await openCaller()
  const started = Promise.withResolvers<AbortSignal>()
  const pool = caller.queues.work('jobs', (_message, { signal }) => {
    started.resolve(signal)
    return new Promise(() => {})
  })
  await caller.queues.send('jobs', { body: 'x' })
  const signal = await started.promise
  expect(await pool.drain('100ms')).toBe(1)
  expect(signal.aborted).toBe(true)
  await pool.closed
  expect(await stateOf(caller)).toEqual([1, 0, 0])
})

test('work - a signal drains the pool, and wrong arguments are refused with words', async () => {
  const { queues } = await openCaller()
  const gone = new AbortController()
  const pool = queues.work('jobs', { signal: gone.signal }, () => {})
  gone.abort()
  await pool.closed
  expect(() => queues.work('jobs', { concurrent: 1 } as object, () => {})).toThrow('did you mean concurrency?')
  expect(() => queues.work('jobs', { lease: 'soon' as '1s' }, () => {})).toThrow('invalid argument lease: "soon"')
  expect(() => void Reflect.apply(queues.work.bind(queues), undefined, ['jobs'])).toThrow('handler')
  const refused = queues.work('_AGENTS_.x', { onError: () => {} }, () => {})
  await expect(refused.closed).rejects.toThrow('reserved channel name')
})
