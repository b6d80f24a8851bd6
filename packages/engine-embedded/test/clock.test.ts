import { KEPT_UNTIL, UNTIL_DIGITS } from '@signalbox/broker-core/engine'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'

import { CLIENT, Folder, queued, receive, storedEvent, textsOf } from './support/store.ts'

const HOUR = 3_600_000

test('clock - setting the clock back changes no lease and no order of entries', async () => {
  await using folder = await Folder.make()
  let now = 1_800_000_000_000
  await using engine = await folder.open({ now: () => now })
  const first = await engine.eventsStore.append('log', storedEvent('first'))
  await engine.queues.send('queue', queued('x'))
  const [lease] = await receive(engine, 'queue', { leaseMs: 60_000 })
  const [short] = (await engine.queues.send('short', queued('x')), await receive(engine, 'short', { leaseMs: 50 }))
  now -= HOUR
  const second = await engine.eventsStore.append('log', storedEvent('second'))
  expect(second).toMatchObject({ sequence: 2, timestamp: first.timestamp })
  const entries = await engine.eventsStore.read('log', { fromTimestamp: first.timestamp, maxMessages: 10 })
  expect(entries.map(({ sequence }) => sequence)).toEqual([1, 2])
  expect(await receive(engine, 'queue')).toEqual([])
  expect(await engine.queues.ack([lease?.receipt ?? ''], CLIENT)).toMatchObject({ settled: 1 })
  const [again] = await receive(engine, 'short', { waitMs: 20_000 })
  expect(again?.message.receiveCount).toBe(2)
  expect(await engine.queues.ack([short?.receipt ?? ''], CLIENT)).toMatchObject({ settled: 0 })

  now += 3 * HOUR
  expect((await engine.eventsStore.append('log', storedEvent('third'))).timestamp).toBe(now)
})

test('clock - timestamps of an events store never decrease, also after a restart with an earlier clock', async () => {
  await using folder = await Folder.make()
  let now = 1_800_000_000_000
  {
    await using engine = await folder.open({ now: () => now })
    await engine.eventsStore.append('log', storedEvent('first'))
  }
  now -= HOUR
  await using engine = await folder.open({ now: () => now })
  expect(await engine.eventsStore.append('log', storedEvent('second'))).toMatchObject({
    sequence: 2,
    timestamp: now + HOUR,
  })
})

test('C5 - clock - a deduplication id holds for two minutes, over a restart and a clock set back', async () => {
  await using folder = await Folder.make()
  let now = 1_800_000_000_000
  const send = { deduplicationId: 'm-1' }
  let first: { id: string }
  {
    await using engine = await folder.open({ now: () => now })
    first = await engine.queues.send('queue', queued('first', send))
    await engine.eventsStore.append('log', storedEvent('first', send))
  }
  now += 119_000
  {
    await using engine = await folder.open({ now: () => now })
    const again = await engine.queues.send('queue', queued('again', send))
    expect(again).toEqual({ id: first.id, sequence: 1, duplicate: true })
    expect(await engine.eventsStore.append('log', storedEvent('again', send))).toMatchObject({
      sequence: 1,
      duplicate: true,
    })
    now -= 130_000
    expect(await engine.queues.send('queue', queued('earlier', send))).toMatchObject({ duplicate: true })
  }
  now += 132_000
  await using engine = await folder.open({ now: () => now })
  expect(await engine.queues.send('queue', queued('later', send))).toMatchObject({ sequence: 2, duplicate: false })
  expect(await engine.eventsStore.append('log', storedEvent('later', send))).toMatchObject({
    sequence: 2,
    duplicate: false,
  })
  expect(textsOf(await receive(engine, 'queue'))).toEqual(['first', 'later'])
})

test('C2 - clock - delays and expiries follow the wall clock when it is set forward', async () => {
  await using folder = await Folder.make()
  let now = 1_800_000_000_000
  await using engine = await folder.open({ now: () => now })
  await engine.queues.send('queue', queued('delayed', { delayMs: HOUR }))
  await engine.queues.send('queue', queued('expires', { expirationMs: HOUR }))
  await engine.queues.send('queue', queued('both', { delayMs: HOUR, expirationMs: HOUR }))
  const waiting = receive(engine, 'late', { waitMs: 20_000 })
  await engine.queues.send('late', queued('late', { delayMs: HOUR }))
  now += HOUR
  expect(textsOf(await receive(engine, 'queue'))).toEqual(['delayed'])
  expect(textsOf(await waiting)).toEqual(['late'])
})

const LEASE_MS = 600_000

test.each([
  ['granted', (_extend: () => Promise<unknown>) => Promise.resolve()],
  ['extended', (extend: () => Promise<unknown>) => extend()],
])('leases - a receipt settles until the deadline of its lease, and not after: %s', async (_name, prepare) => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  const realNow = performance.now.bind(performance)
  let offsetMs = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => realNow() + offsetMs)
  onTestFinished(() => clock.mockRestore())
  for (const text of ['in time', 'late']) await engine.queues.send('q', queued(text))
  const leased = await engine.queues.receive('q', { maxMessages: 2, waitMs: 0, leaseMs: LEASE_MS, clientId: CLIENT })
  const [inTime = '', late = ''] = leased.map(({ receipt }) => receipt)
  await prepare(() => engine.queues.extend([inTime, late], CLIENT, LEASE_MS))
  offsetMs = LEASE_MS - 60_000
  expect(await engine.queues.ack([inTime], CLIENT)).toEqual({ settled: 1, lost: [] })
  offsetMs = LEASE_MS
  expect(await engine.queues.ack([late], CLIENT)).toEqual({ settled: 0, lost: [late] })
})

test('C5 - clock - a deduplication id that is kept until a time holds until then, over a restart and sweeps', async () => {
  await using folder = await Folder.make()
  let now = 1_800_000_000_000
  const send = { deduplicationId: `${KEPT_UNTIL}${String(now + HOUR).padStart(UNTIL_DIGITS, '0')} id` }
  {
    await using engine = await folder.open({ now: () => now })
    await engine.queues.send('queue', queued('other', { deduplicationId: 'id' }))
    await engine.queues.send('queue', queued('first', send))
    now += HOUR - 1
    const database = new Database(folder.file('signalbox.db'), { readonly: true })
    const ids = database.prepare('SELECT deduplication_id FROM deduplication').pluck()
    // A sweep removes the other id.
    await expect.poll(() => ids.all(), { timeout: 10_000 }).toEqual([send.deduplicationId])
    database.close()
  }
  await using engine = await folder.open({ now: () => now })
  expect(await engine.queues.send('queue', queued('again', send))).toMatchObject({ duplicate: true })
  now += 1
  expect(await engine.queues.send('queue', queued('later', send))).toMatchObject({ duplicate: false })
})
