import type { Broker, BrokerHandle, Engine, QueueMessage } from '@signalbox/broker-core'
import { createBroker, decodeText } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import type { FireOutcome, ScheduleOptions } from '../../src/index.ts'
import { Schedules } from '../../src/index.ts'

const OPERATOR = 'operator'
const HOUR_MS = 3_600_000

const JOBS = { id: 'report', target: { type: 'queues', channel: 'jobs' }, message: { body: 'go' } } as const

/** A clock that a test sets. It goes on from there. */
class TestClock {
  #ahead = 0

  readonly now = (): number => Date.now() + this.#ahead

  set(time: number): void {
    this.#ahead = time - Date.now()
  }
}

interface Bench {
  readonly schedules: Schedules
  readonly engine: Engine
  readonly broker: Broker
  readonly system: BrokerHandle
  readonly outcomes: [FireOutcome, number][]
  readonly failures: unknown[]
  readonly close: () => Promise<void>
  /** Receives the messages of the queue `jobs`; waits for the first one. */
  readonly received: (waitMs?: number) => Promise<readonly QueueMessage[]>
}

interface BenchOptions extends Partial<ScheduleOptions> {
  readonly path?: string
  readonly queueMaxMessages?: number
}

async function open({ path = testFolder(), queueMaxMessages = 0, ...options }: BenchOptions = {}): Promise<Bench> {
  const engine = await openEmbeddedEngine({ path, queueMaxMessages, now: options.now ?? Date.now })
  const { broker, system } = createBroker(engine)
  const outcomes: [FireOutcome, number][] = []
  const failures: unknown[] = []
  const schedules = await Schedules.open(system, {
    engine,
    fired: (outcome, count) => outcomes.push([outcome, count]),
    failed: (error) => failures.push(error),
    ...options,
  })
  let closed = false
  const close = async (): Promise<void> => {
    if (closed) return
    closed = true
    await schedules[Symbol.asyncDispose]()
    await engine.close()
  }
  onTestFinished(close)
  const { queues } = broker.as({ clientId: 'worker' })
  return {
    schedules,
    engine,
    broker,
    system,
    outcomes,
    failures,
    close,
    async received(waitMs = 10_000) {
      const deliveries = await queues.receive('jobs', { maxMessages: 100, waitMs })
      await queues.ack(deliveries.map(({ receipt }) => receipt))
      return deliveries.map(({ message }) => message)
    },
  }
}

/** Returns the next full minute after `now`, in ms. */
function nextMinute(now: number): number {
  return (Math.floor(now / 60_000) + 1) * 60_000
}

function iso(time: number): string {
  return new Date(time).toISOString()
}

test('schedules - a queue gets one message at each due time, with the id and the time as tags', async () => {
  const clock = new TestClock()
  const { schedules, received, outcomes } = await open({ now: clock.now })
  const message = { body: '{"report":7}', metadata: 'm', tags: { shop: 'north' } }
  await schedules.set({ ...JOBS, cron: '* * * * *', message }, OPERATOR)
  const due = nextMinute(clock.now())
  for (const time of [due, due + 60_000]) {
    clock.set(time - 100)
    const messages = await received()
    expect(messages).toHaveLength(1)
    expect(messages[0]).toMatchObject({
      clientId: 'signalbox',
      metadata: 'm',
      tags: {
        shop: 'north',
        group: 'report',
        schedule_id: 'report',
        schedule_time: iso(time),
        message_id: `report ${iso(time)}`,
      },
    })
    expect(decodeText(messages[0]?.body ?? new Uint8Array())).toBe('{"report":7}')
    await expect.poll(() => schedules.get('report')?.record).toMatchObject({ settled: time, missed: 0, sent: { time } })
  }
  expect(outcomes).toEqual([
    ['sent', 1],
    ['sent', 1],
  ])
  expect(schedules.get('report')?.next(2)).toEqual([due + 120_000, due + 180_000])
})

test('schedules - the group of the message stays', async () => {
  const { schedules, received } = await open()
  await schedules.set({ ...JOBS, every_seconds: 60, message: { body: 'x', tags: { group: 'mine' } } }, OPERATOR)
  await schedules.trigger('report')
  expect((await received())[0]?.tags['group']).toBe('mine')
})

test('schedules - events stores and subscribers of events get messages too', async () => {
  const clock = new TestClock()
  const { schedules, broker } = await open({ now: clock.now })
  const handle = broker.as({ clientId: 'reader' })
  const stored = Promise.withResolvers<string | undefined>()
  const published = Promise.withResolvers<string | undefined>()
  await handle.eventsStore.subscribe('log', { from: 'new' }, {}, ({ tags }) => stored.resolve(tags['schedule_id']))
  await handle.events.subscribe('news', {}, ({ tags }) => published.resolve(tags['schedule_id']))
  const at = iso(clock.now() + HOUR_MS)
  await schedules.set({ ...JOBS, id: 'a', at, target: { type: 'events_store', channel: 'log' } }, OPERATOR)
  await schedules.set({ ...JOBS, id: 'b', at, target: { type: 'events', channel: 'news' } }, OPERATOR)
  clock.set(Date.parse(at))
  expect(await Promise.all([stored.promise, published.promise])).toEqual(['a', 'b'])
  expect(schedules.get('b')?.next(1)).toEqual([])
})

test('schedules - after a stop within the window, the latest of the missed times is sent, once', async () => {
  const clock = new TestClock()
  const path = testFolder()
  const before = await open({ path, now: clock.now })
  await before.schedules.set({ ...JOBS, cron: '*/10 * * * *' }, OPERATOR)
  const start = Math.ceil(clock.now() / 600_000) * 600_000
  await before.close()
  clock.set(start + 25 * 60_000)
  const after = await open({ path, now: clock.now })
  expect((await after.received()).map(({ tags }) => tags['schedule_time'])).toEqual([iso(start + 20 * 60_000)])
  await expect
    .poll(() => after.outcomes)
    .toEqual([
      ['sent', 1],
      ['missed', 2],
    ])
  expect(after.schedules.get('report')?.record.missed).toBe(2)
})

test('schedules - after a stop longer than the window, every missed time counts, and none is sent', async () => {
  const clock = new TestClock()
  const path = testFolder()
  const before = await open({ path, now: clock.now })
  await before.schedules.set({ ...JOBS, cron: '0 * * * *', catchup_window_seconds: 600 }, OPERATOR)
  const start = Math.ceil(clock.now() / HOUR_MS) * HOUR_MS
  await before.close()
  clock.set(start + 2 * HOUR_MS + 601_000)
  const after = await open({ path, now: clock.now })
  await expect.poll(() => after.outcomes, { timeout: 5_000 }).toEqual([['missed', 3]])
  expect(after.schedules.get('report')?.record).toMatchObject({ settled: start + 2 * HOUR_MS, missed: 3 })
  expect(after.schedules.get('report')?.record.sent).toBeUndefined()
  clock.set(start + 3 * HOUR_MS)
  expect((await after.received()).map(({ tags }) => tags['schedule_time'])).toEqual([iso(start + 3 * HOUR_MS)])
})

test('schedules - a message that was sent before its record was lost is not stored again, hours later', async () => {
  const clock = new TestClock()
  const path = testFolder()
  const before = await open({ path, now: clock.now })
  await before.schedules.set({ ...JOBS, cron: '0 0 * * *', catchup_window_seconds: 36_000 }, OPERATOR)
  const [due = 0] = before.schedules.get('report')?.next(1) ?? []
  clock.set(due)
  expect(await before.received()).toHaveLength(1)
  await expect.poll(() => before.schedules.get('report')?.record.settled).toBe(due)
  // As after a kill between both writes.
  await before.system.eventsStore.publish('_AGENTS_.schedules', { key: 'f/report', body: '', tombstone: true })
  await before.close()
  clock.set(due + 9 * HOUR_MS)
  const after = await open({ path, now: clock.now })
  await expect.poll(() => after.outcomes, { timeout: 5_000 }).toEqual([['duplicate', 1]])
  expect(await after.received(0)).toEqual([])
})

test('schedules - a paused schedule sends nothing, and its due times in the pause are not sent later', async () => {
  const clock = new TestClock()
  const { schedules, received, outcomes } = await open({ now: clock.now })
  await schedules.set({ ...JOBS, cron: '* * * * *', paused: true }, OPERATOR)
  await schedules.set({ ...JOBS, id: 'witness', cron: '* * * * *' }, OPERATOR)
  expect(schedules.get('report')?.next(1)).toEqual([])
  const due = nextMinute(clock.now())
  clock.set(due)
  expect((await received()).map(({ tags }) => tags['schedule_id'])).toEqual(['witness'])
  expect(await schedules.setPaused('witness', true, OPERATOR)).toMatchObject({ given: { paused: true } })
  clock.set(due + 10 * 60_000)
  await schedules.setPaused('report', false, OPERATOR)
  expect(schedules.get('report')?.next(1)).toEqual([due + 11 * 60_000])
  clock.set(due + 11 * 60_000)
  expect((await received()).map(({ tags }) => tags['schedule_id'])).toEqual(['report'])
  expect(outcomes.filter(([outcome]) => outcome === 'missed')).toEqual([])
  expect(await schedules.setPaused('none', true, OPERATOR)).toBeUndefined()
})

test('schedules - a time that passes while the schedule is written is due', async () => {
  const { schedules, received } = await open()
  await schedules.set({ ...JOBS, at: iso(Date.now() - 50) }, OPERATOR)
  expect(await received()).toHaveLength(1)
})

test('schedules - a trigger sends at once, also while paused, and changes no due time', async () => {
  const { schedules, received } = await open()
  await schedules.set({ ...JOBS, cron: '0 0 1 1 *', paused: true }, OPERATOR)
  const first = await schedules.trigger('report')
  const second = await schedules.trigger('report')
  const messages = await received()
  expect(messages.map(({ id }) => id)).toEqual([first?.messageId, second?.messageId])
  expect(messages[0]?.tags).toMatchObject({ schedule_id: 'report', group: 'report' })
  expect(schedules.get('report')?.record).toEqual({ settled: 0, missed: 0 })
  expect(await schedules.trigger('none')).toBeUndefined()
})

test('schedules - a deleted queue is created again by the next message', async () => {
  const clock = new TestClock()
  const { schedules, received, broker } = await open({ now: clock.now })
  await schedules.set({ ...JOBS, cron: '* * * * *' }, OPERATOR)
  const due = nextMinute(clock.now())
  clock.set(due)
  expect(await received()).toHaveLength(1)
  await broker.as({ clientId: 'admin' }).channels.delete('queues', 'jobs')
  clock.set(due + 60_000)
  expect(await received()).toHaveLength(1)
})

test('schedules - a full queue is tried again until it has room, and shows the reason until then', async () => {
  const clock = new TestClock()
  const { schedules, received, broker, outcomes } = await open({ now: clock.now, queueMaxMessages: 1 })
  await broker.as({ clientId: 'other' }).queues.send('jobs', { body: 'first' })
  await schedules.set({ ...JOBS, cron: '0 * * * *' }, OPERATOR)
  const [due = 0] = schedules.get('report')?.next(1) ?? []
  clock.set(due)
  await expect
    .poll(() => schedules.get('report')?.record.failure, { timeout: 5_000 })
    .toEqual({ time: due, reason: expect.stringContaining('is full') })
  expect(await received()).toHaveLength(1)
  expect((await received()).map(({ tags }) => tags['schedule_time'])).toEqual([iso(due)])
  await expect
    .poll(() => schedules.get('report')?.record)
    .toMatchObject({ settled: due, missed: 0, failure: undefined })
  expect(outcomes).toContainEqual(['failed', 1])
})

test('schedules - a clock that is set back repeats no due time', async () => {
  const clock = new TestClock()
  const { schedules, received } = await open({ now: clock.now })
  await schedules.set({ ...JOBS, cron: '0 * * * *' }, OPERATOR)
  await schedules.set({ ...JOBS, id: 'witness', cron: '30 * * * *' }, OPERATOR)
  const due = Math.ceil(clock.now() / HOUR_MS) * HOUR_MS + 24 * HOUR_MS
  clock.set(due)
  // The clock went forward: of the skipped times, the latest is sent.
  const ids = new Set<string | undefined>()
  for (let count = 0; count < 2;) {
    const messages = await received()
    count += messages.length
    for (const { tags } of messages) ids.add(`${tags['schedule_id']} ${tags['schedule_time']}`)
  }
  expect(ids).toEqual(new Set([`report ${iso(due)}`, `witness ${iso(due - HOUR_MS / 2)}`]))
  clock.set(due - HOUR_MS)
  expect(schedules.get('report')?.next(1)).toEqual([due + HOUR_MS])
  clock.set(due + HOUR_MS / 2)
  expect((await received()).map(({ tags }) => tags['schedule_id'])).toEqual(['witness'])
})

test('schedules - a node whose clock differs from that of the servers sends nothing', async () => {
  const clock = new TestClock()
  const node = { id: 'me', clockSkewed: true }
  const { schedules, received, outcomes } = await open({ now: clock.now, engine: { node, otherNodes: () => [] } })
  await schedules.set({ ...JOBS, cron: '0 * * * *' }, OPERATOR)
  const [due = 0] = schedules.get('report')?.next(1) ?? []
  clock.set(due + 60_000)
  expect(await received(2_500)).toEqual([])
  expect(outcomes).toEqual([])
  node.clockSkewed = false
  expect((await received()).map(({ tags }) => tags['schedule_time'])).toEqual([iso(due)])
})

test('schedules - a change needs the revision that it names', async () => {
  const { schedules } = await open()
  const first = await schedules.set({ ...JOBS, every_seconds: 60 }, OPERATOR, 0)
  await expect(schedules.set({ ...JOBS, every_seconds: 61 }, OPERATOR, 0)).rejects.toMatchObject({
    code: 'CONFLICT',
    details: { id: 'report', last: first?.revision },
  })
  const second = await schedules.set({ ...JOBS, every_seconds: 61 }, 'another', first?.revision)
  expect(second).toMatchObject({ given: { every_seconds: 61 }, changedBy: 'another' })
  await expect(schedules.remove('report', first?.revision)).rejects.toMatchObject({ code: 'CONFLICT' })
  expect(await schedules.remove('report', second?.revision)).toBe(true)
  expect(await schedules.remove('report')).toBe(false)
  expect(schedules.list()).toEqual([])
})

test('schedules - a change of the message keeps the due times, a change of the time does not', async () => {
  const clock = new TestClock()
  const { schedules } = await open({ now: clock.now })
  const first = await schedules.set({ ...JOBS, every_seconds: 3_600 }, OPERATOR)
  clock.set(clock.now() + 600_000)
  const second = await schedules.set({ ...JOBS, every_seconds: 3_600, message: { body: 'other' } }, OPERATOR)
  expect(second?.next(1)).toEqual(first?.next(1))
  const third = await schedules.set({ ...JOBS, every_seconds: 3_601 }, OPERATOR)
  expect(third?.next(1)[0]).toBeGreaterThan((first?.next(1)[0] ?? 0) + 500_000)
})

test('schedules - an entry of a newer version is reported, and the others work', async () => {
  const { schedules, system, failures, received } = await open()
  const body = JSON.stringify({ schedule: { ...JOBS, id: 'new', lunar: 'full moon' }, since: 0 })
  await system.eventsStore.publish('_AGENTS_.schedules', { key: 'd/new', body })
  await schedules.set({ ...JOBS, every_seconds: 60 }, OPERATOR)
  expect(schedules.list().map(({ given }) => given.id)).toEqual(['report'])
  expect(failures.map(String)).toEqual([expect.stringContaining('it is no schedule of this version')])
  await schedules.trigger('report')
  expect(await received()).toHaveLength(1)
})

test.each([
  [{}, /^cron is missing; it must be given, or every_seconds, or at$/],
  [{ cron: '* * * * *', every_seconds: 10 }, /one of them/],
  [{ every_seconds: 9 }, /every_seconds is 9/],
  [{ every_seconds: 10, time_zone: 'UTC' }, /time_zone is "UTC"; it must be absent/],
  [{ every_seconds: 10, id: 'a b' }, /id is "a b"; it must be 1 to 128 letters/],
  [{ every_seconds: 10, target: { type: 'commands', channel: 'c' } }, /target.type.*queues, events_store, events/],
  [{ every_seconds: 10, target: { type: 'queues', channel: '_AGENTS_.x' } }, /does not begin with _AGENTS_\./],
  [{ every_seconds: 10, message: { body: 'x', tags: { message_id: 'y' } } }, /message.tags.message_id/],
  [{ every_seconds: 10, message: { body: 'x'.repeat(70_000) } }, /65536 bytes/],
  [{ every_seconds: 10, catchup_window_seconds: 0 }, /catchup_window_seconds is 0/],
  [{ every_seconds: 10, every: 1 }, /every is unknown/],
])('schedules - %j is refused with the reason', async (change, text) => {
  const { schedules } = await open()
  const problems = schedules.problems({ ...JOBS, ...change })
  expect(
    problems
      .map(({ argument, given, allowed }) =>
        given === undefined
          ? `${argument} is missing; it must be ${allowed}`
          : `${argument} is ${given}; it must be ${allowed}`,
      )
      .join('. '),
  ).toMatch(text)
})
