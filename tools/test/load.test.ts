import { expect, test } from 'vitest'

import { groupOrder, measureFair, measureOrder } from '../load/groups.ts'
import { atFileLimit, fileLimitProblems, idleConnections } from '../load/idle-connections.ts'
import { soak, soakProblems } from '../load/messages.ts'
import { rotateCertificates, rotateKeys, rotationProblems } from '../load/rotation.ts'
import { webhookSoak } from '../load/webhooks.ts'

/** Rotations are checked under load, and not how much of it a server bears: other tests use the processors too. */
const CLIENTS = { clients: 8, pauseMs: 20 }

test('soak - long polls and senders at once lose and double nothing', { timeout: 90_000 }, async () => {
  const report = await soak({
    warmUpSeconds: 0,
    seconds: 1,
    polls: 40,
    senders: 8,
    queues: 5,
    rate: 400,
    // Whether the loop is free is for the timed run on a quiet machine to say, not for a test.
    delayBudgetMs: Number.POSITIVE_INFINITY,
    core: undefined,
    log: () => {},
  })
  expect(soakProblems(report)).toEqual([])
  expect(report.received).toBe(report.sent)
})

test('soak - webhook subscriptions lose nothing while other endpoints fail', { timeout: 180_000 }, async () => {
  const report = await webhookSoak({ subscriptions: 10, rate: 40, rounds: 1, seconds: 1, log: () => {} })
  expect(report).toMatchObject({ published: 80, lost: 0 })
  for (const [kind, attempts] of Object.entries(report.attempts)) expect([kind, attempts > 0]).toEqual([kind, true])
})

test('soak - groups keep their order through kills, and small groups do not wait', { timeout: 180_000 }, async () => {
  const report = await groupOrder({
    engine: 'embedded',
    messages: 1_000,
    groups: 100,
    seconds: 2,
    seed: 1,
    log: () => {},
  })
  expect(report.lost).toBe(0)
  for (const figure of ['kills', 'nacked', 'lapsed', 'redriven'] as const) expect(report[figure]).toBeGreaterThan(0)
  const { receiveMs, peakMib, idleMib } = await measureOrder({ messages: 1_500, groups: 750 })
  expect(receiveMs.length).toBeGreaterThan(0)
  expect(peakMib - idleMib).toBeLessThan(64)
  const { waits } = await measureFair({ messages: 2_000, groups: 100 })
  expect(waits).toHaveLength(100)
  expect(waits.at(-1)?.[0]).toBeLessThanOrEqual(202)
})

test('soak - groups keep their order on NATS through kills', { timeout: 180_000 }, async () => {
  const report = await groupOrder({ engine: 'nats', messages: 1_500, groups: 300, seconds: 6, seed: 1, log: () => {} })
  expect(report.lost).toBe(0)
  for (const figure of ['kills', 'nacked', 'lapsed', 'redriven'] as const) expect(report[figure]).toBeGreaterThan(0)
})

test('S1 - soak: keys behind a URL rotate under load without a failed request', { timeout: 60_000 }, async () => {
  const report = await rotateKeys({ ...CLIENTS, seconds: 5, intervalMs: 1_000, source: 'url' })
  expect(rotationProblems(report)).toEqual([])
  expect(report.rotations).toBeGreaterThan(2)
})

test('S8 - soak: certificates rotate under load without a dropped request', { timeout: 60_000 }, async () => {
  const report = await rotateCertificates({ ...CLIENTS, seconds: 2, intervalMs: 50 })
  expect(rotationProblems(report)).toEqual([])
})

test('soak - a failed request, a rotation without effect, and a run without requests are problems', () => {
  const good = { seconds: 1, requests: 5, failures: [], rotations: 1, takenUp: 2, exitCode: 0 }
  expect(rotationProblems(good)).toEqual([])
  expect(rotationProblems({ ...good, failures: ['ECONNRESET'] })).toEqual(['1 requests failed: ECONNRESET'])
  expect(rotationProblems({ ...good, takenUp: 0, exitCode: 1 })).toHaveLength(2)
  expect(rotationProblems({ ...good, requests: 0, rotations: 0 })).toHaveLength(2)
})

test(
  'S8 - soak: a thousand idle connections block no other client, and need little memory',
  { timeout: 60_000 },
  async () => {
    const report = await idleConnections({ connections: 1_000, untilClosed: false, log: () => {} })
    expect(report.problems).toEqual([])
    expect(report.connections).toBe(1_000)
    expect(report.kib).toBeLessThan(40)
    // Not how fast, which is for a quiet machine to say: that nobody waits for a time-out.
    expect(report.callMs.max).toBeLessThan(10_000)
  },
)

test(
  'S8 - soak: at the limit of open files others are served, the log tells it, and it passes',
  { timeout: 60_000 },
  async () => {
    const report = await atFileLimit(256)
    expect(fileLimitProblems(report)).toEqual([])
  },
)
