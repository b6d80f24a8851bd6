import { setImmediate as nextTurn } from 'node:timers/promises'

import type { BrokerHandle, ConsumerSettings, QueueDelivery } from '@signalbox/broker-core'
import { Authorization, createBroker, MAX_PAUSE_MS, parsePolicy, PAUSED_UNTIL_RESUMED } from '@signalbox/broker-core'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { ALICE, BOB, failure, openBroker, text } from './broker-fixture.ts'

const SOON = { waitMs: 30_000, leaseMs: 60_000 }

/** A broker with the queue `jobs`, and functions that change the settings for its consumers. */
async function openJobs(messages: number) {
  const opened = await openBroker()
  const { broker, engine, operators } = opened
  const waits: string[] = []
  broker.observe({ gateWaited: (reason) => void waits.push(reason) })
  const alice = broker.as(ALICE)
  await alice.channels.create('queues', 'jobs')
  const numbers = Array.from({ length: messages }, (_, i) => text(`${i + 1}`))
  await alice.queues.sendBatch('jobs', numbers)
  const limit = (consumers: Partial<ConsumerSettings> | null): void => {
    const all = consumers && { paused_until: null, max_per_second: 0, max_in_flight: 0, ...consumers }
    engine.settings.replace([{ type: 'queues', match: 'jobs*', source: 'api', consumers: all }])
  }
  const pause = (until: number): void => broker.pauses.set('jobs', { until, reason: '', changedBy: 'operator' })
  const resume = (): void => broker.pauses.set('jobs', undefined)
  return { broker, engine, operator: operators.as(BOB), alice, waits, limit, pause, resume }
}

function bodies(deliveries: readonly QueueDelivery[]): string[] {
  return deliveries.map(({ message }) => Buffer.from(message.body).toString())
}

/** Receives until it has a number of messages, and not more, and returns the time of each. */
async function timesOf({ queues }: BrokerHandle, count: number): Promise<number[]> {
  const times: number[] = []
  while (times.length < count) {
    const deliveries = await queues.receive('jobs', { ...SOON, maxMessages: count - times.length })
    for (const { receipt } of deliveries) {
      times.push(performance.now())
      await queues.ack([receipt])
    }
  }
  return times
}

test('pause - a paused queue delivers nothing, and its waiting receivers are served in order after it', async () => {
  const { alice, pause, resume, waits } = await openJobs(3)
  pause(PAUSED_UNTIL_RESUMED)
  expect(await alice.queues.receive('jobs')).toEqual([])
  const served: string[][] = []
  const waiting = Array.from({ length: 3 }, async () => {
    served.push(bodies(await alice.queues.receive('jobs', SOON)))
  })
  await until(() => waits.length === 4)
  expect(waits).toEqual(['paused', 'paused', 'paused', 'paused'])
  expect(served).toEqual([])
  resume()
  await Promise.all(waiting)
  expect(served).toEqual([['1'], ['2'], ['3']])
})

test('pause - a receiver that waits when a pause begins gets no message of the pause', async () => {
  const { alice, pause, resume, waits } = await openJobs(0)
  const waiting = alice.queues.receive('jobs', SOON)
  pause(PAUSED_UNTIL_RESUMED)
  await until(() => waits.length === 1)
  await alice.queues.send('jobs', text('x'))
  expect((await alice.channels.info('queues', 'jobs')).queue).toMatchObject({ waiting: 1, inFlight: 0 })
  resume()
  expect(bodies(await waiting)).toEqual(['x'])
})

test('pause - a receiver that has just passed the gate when a pause begins waits for its end', async () => {
  const { alice, limit, pause, resume, waits } = await openJobs(0)
  limit({ max_in_flight: 5 })
  const waiting = alice.queues.receive('jobs', SOON)
  pause(PAUSED_UNTIL_RESUMED)
  await nextTurn()
  await alice.queues.send('jobs', text('x'))
  expect(waits).toEqual(['paused'])
  expect((await alice.channels.info('queues', 'jobs')).queue).toMatchObject({ waiting: 1, inFlight: 0 })
  resume()
  expect(bodies(await waiting)).toEqual(['x'])
})

test('pause - it ends at its time, without another call', async () => {
  const { alice, pause, limit } = await openJobs(2)
  for (const start of [pause, (end: number) => limit({ paused_until: new Date(end).toISOString() })]) {
    const end = Date.now() + 150
    start(end)
    expect(bodies(await alice.queues.receive('jobs', SOON))).toHaveLength(1)
    expect(Date.now()).toBeGreaterThanOrEqual(end)
  }
})

test('pause - sends, acks, peeks and operators continue', async () => {
  const { alice, broker, operator, pause } = await openJobs(3)
  const [leased] = await alice.queues.receive('jobs')
  const waiting = operator.queues.receive('empty', SOON)
  pause(PAUSED_UNTIL_RESUMED)
  broker.pauses.set('empty', { until: PAUSED_UNTIL_RESUMED, reason: '', changedBy: 'operator' })
  await alice.queues.send('jobs', text('4'))
  await alice.queues.send('empty', text('for operators'))
  expect(await alice.queues.ack([leased?.receipt ?? ''])).toEqual({ settled: 1, lost: [] })
  expect(await alice.queues.peek('jobs', { maxMessages: 9 })).toHaveLength(3)
  expect(bodies(await operator.queues.receive('jobs'))).toEqual(['2'])
  expect(bodies(await waiting)).toEqual(['for operators'])
  expect(await broker.pausedQueues()).toBe(2)
  expect(await alice.channels.info('queues', 'jobs')).toMatchObject({ pausedUntil: PAUSED_UNTIL_RESUMED })
})

test('pause - a receiver extends a pause and never shortens it, within an hour', async () => {
  const { alice, broker, pause } = await openJobs(1)
  await alice.queues.pause('jobs', 2_000)
  const first = broker.pausedUntil('jobs') ?? 0
  expect(first % 1000).toBe(0)
  expect(Math.abs(first - Date.now() - 2_500)).toBeLessThan(1_500)
  await alice.queues.pause('jobs', 60_000)
  const second = broker.pausedUntil('jobs') ?? 0
  expect(second).toBeGreaterThan(first + 50_000)
  await alice.queues.pause('jobs', 1_000)
  expect(broker.pausedUntil('jobs')).toBe(second)
  pause(PAUSED_UNTIL_RESUMED)
  await alice.queues.pause('jobs', MAX_PAUSE_MS)
  expect(broker.pausedUntil('jobs')).toBe(PAUSED_UNTIL_RESUMED)
  expect(await failure(alice.queues.pause('jobs', MAX_PAUSE_MS + 1))).toMatchObject({ code: 'ARGUMENT_INVALID' })
  expect(await failure(alice.queues.pause('job', 1_000))).toMatchObject({ code: 'CHANNEL_NOT_FOUND' })
  expect(await failure(alice.queues.pause('_AGENTS_.x', 1_000))).toMatchObject({ code: 'CHANNEL_RESERVED' })
})

test('in flight - receivers together lease at most the limit, and the next one when a lease ends', async () => {
  const { alice, engine, limit, waits } = await openJobs(100)
  limit({ max_in_flight: 5 })
  const leased: QueueDelivery[] = []
  let most = 0
  const receivers = Array.from({ length: 40 }, async () => {
    const deliveries = await alice.queues.receive('jobs', { ...SOON, maxMessages: 3 })
    leased.push(...deliveries)
    most = Math.max(most, engine.queues.leased('jobs'))
    return deliveries.length
  })
  await until(() => leased.length === 5)
  expect(waits).toHaveLength(38)
  expect(await alice.queues.receive('jobs')).toEqual([])
  // By ack, by nack and by the end of the lease.
  const [ack = '', nack = '', lapse = ''] = leased.map(({ receipt }) => receipt)
  await alice.queues.ack([ack])
  await until(() => leased.length === 6)
  await alice.queues.nack([nack])
  await until(() => leased.length === 7)
  await alice.queues.extend([lapse], 1)
  await until(() => leased.length === 8)
  for (let done = 3; done < leased.length;) {
    const receipts = leased.slice(done).map(({ receipt }) => receipt)
    done += receipts.length
    await alice.queues.ack(receipts)
    await until(() => engine.queues.leased('jobs') > 0 || leased.length === done)
  }
  const counts = await Promise.all(receivers)
  expect(Math.min(...counts)).toBeGreaterThan(0)
  expect(most).toBe(5)
})

test('in flight - a receiver that waits for messages gives back what it does not lease', async () => {
  const { alice, limit } = await openJobs(0)
  limit({ max_in_flight: 4 })
  const first = alice.queues.receive('jobs', { ...SOON, maxMessages: 4 })
  const second = alice.queues.receive('jobs', { ...SOON, maxMessages: 4 })
  await alice.queues.send('jobs', text('1'))
  expect(bodies(await first)).toEqual(['1'])
  await alice.queues.sendBatch('jobs', ['2', '3', '4', '5'].map(text))
  expect(await second).not.toHaveLength(0)
})

test('rate - receivers together get at most the rate, after a burst of one second', async () => {
  const { alice, broker, limit, waits } = await openJobs(100)
  limit({ max_per_second: 40 })
  const each = await Promise.all([alice, broker.as(BOB)].map((handle) => timesOf(handle, 50)))
  const times = each.flat().toSorted((a, b) => a - b)
  expect(times).toHaveLength(100)
  // 40 at once, and 60 at 40 a second.
  expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1_400)
  for (const [i, time] of times.entries()) {
    const later = times.filter((other, at) => at > i && other - time < 500)
    expect(later.length).toBeLessThanOrEqual(40 + 20 + 1)
  }
  expect(new Set(waits)).toEqual(new Set(['rate']))
})

test('rate - a fraction of a message in a second delivers one message at a time', async () => {
  const { alice, limit } = await openJobs(2)
  limit({ max_per_second: 0.25 })
  const started = performance.now()
  const [first, second] = await Promise.all(
    ['', ''].map(async () => {
      const deliveries = await alice.queues.receive('jobs', { ...SOON, maxMessages: 9 })
      return { bodies: bodies(deliveries), at: performance.now() - started }
    }),
  )
  expect([first?.bodies, second?.bodies]).toEqual([['1'], ['2']])
  expect(second?.at).toBeGreaterThan(3_900)
})

test('rate - receivers that wait on an empty queue save no burst', async () => {
  const { alice, limit } = await openJobs(0)
  limit({ max_per_second: 2 })
  const receivers = Array.from({ length: 10 }, () =>
    alice.queues.receive('jobs', { waitMs: 600, leaseMs: 60_000, maxMessages: 2 }),
  )
  await alice.queues.sendBatch(
    'jobs',
    Array.from({ length: 10 }, (_, i) => text(`${i}`)),
  )
  const received = (await Promise.all(receivers)).flat().length
  // A burst of two, and one more within the wait of 0.6 s.
  expect(received).toBeLessThanOrEqual(3)
  expect(received).toBeGreaterThanOrEqual(2)
})

test('gate - new settings apply to receivers that wait', async () => {
  const { alice, limit, waits } = await openJobs(0)
  const waiting = Array.from({ length: 4 }, () => alice.queues.receive('jobs', SOON))
  limit({ max_in_flight: 2 })
  await until(() => waits.length === 2)
  await alice.queues.sendBatch('jobs', ['1', '2', '3', '4'].map(text))
  expect((await Promise.all(waiting.slice(0, 2))).map(bodies)).toEqual([['1'], ['2']])
  limit({ max_in_flight: 3 })
  expect(bodies((await waiting[2]) ?? [])).toEqual(['3'])
  limit(null)
  expect(bodies((await waiting[3]) ?? [])).toEqual(['4'])
  expect(waits[0]).toBe('in_flight')
})

test('gate - a receiver that is interrupted keeps its place', async () => {
  const { alice, limit, waits } = await openJobs(0)
  limit({ max_in_flight: 1 })
  const order: string[] = []
  const receivers = ['first', 'second', 'third'].map(async (name) => {
    const [delivery] = await alice.queues.receive('jobs', SOON)
    order.push(name)
    await alice.queues.ack([delivery?.receipt ?? ''])
  })
  await until(() => waits.length === 2)
  // The first change meets the first receiver before it waits in the engine, the second one while it waits.
  for (const rate of [1_000, 2_000]) {
    limit({ max_in_flight: 1, max_per_second: rate })
    await nextTurn()
  }
  await alice.queues.sendBatch('jobs', ['1', '2', '3'].map(text))
  await Promise.all(receivers)
  expect(order).toEqual(['first', 'second', 'third'])
})

test('gate - an aborted receiver leaves, and the next one is served', async () => {
  const { alice, pause, resume, waits } = await openJobs(1)
  pause(PAUSED_UNTIL_RESUMED)
  const aborter = new AbortController()
  const first = alice.queues.receive('jobs', { ...SOON, signal: aborter.signal })
  const second = alice.queues.receive('jobs', SOON)
  await until(() => waits.length === 2)
  aborter.abort(new Error('gone'))
  await expect(first).rejects.toThrow('gone')
  resume()
  const deliveries = await second
  expect(deliveries[0]?.message).toMatchObject({ receiveCount: 1 })
})

test('gate - a wait at the gate ends after the time of the receive, and when the engine closes', async () => {
  const { alice, engine, pause, waits } = await openJobs(1)
  pause(PAUSED_UNTIL_RESUMED)
  const started = performance.now()
  expect(await alice.queues.receive('jobs', { waitMs: 100 })).toEqual([])
  expect(performance.now() - started).toBeGreaterThan(95)
  const waiting = failure(alice.queues.receive('jobs', SOON))
  await until(() => waits.length === 2)
  await engine.close()
  expect(await waiting).toMatchObject({ code: 'ENGINE_UNAVAILABLE' })
})

test('gate - a receiver that may no longer receive leaves the gate', async () => {
  const { engine } = await openBroker()
  const allowed = parsePolicy({
    rules: [{ clients: '*', actions: '*', patterns: '*', channels: '*', effect: 'allow' }],
  })
  const authorization = new Authorization(allowed)
  const { broker } = createBroker(engine, { authorization })
  const alice = broker.as(ALICE)
  await alice.queues.send('jobs', text('x'))
  await alice.queues.pause('jobs', 60_000)
  const waiting = failure(alice.queues.receive('jobs', SOON))
  authorization.replace({ rules: [] })
  expect(await waiting).toMatchObject({ code: 'FORBIDDEN' })
  expect(await failure(alice.queues.pause('jobs', 60_000))).toMatchObject({ code: 'FORBIDDEN' })
})
