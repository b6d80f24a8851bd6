import { expect, test } from 'vitest'

import { canCountSyncs } from '../crash/http-rounds.ts'
import { agentCrash, agentSummary, crash, crashSummary, scheduleCrash, scheduleSummary } from '../crash/run.ts'
import { QueueLedger, StoreLedger, Violations } from '../load/ledgers.ts'

const PLAIN = { delayMs: 0, expirationMs: 0, retried: false }

test('crash - kill -9 under mixed load breaks no promise', { timeout: 120_000 }, async () => {
  const report = await crash({
    seed: 20_260,
    rounds: 1,
    coreRounds: 2,
    maxLifeMs: 600,
    // Other tests share the processors.
    settlingMs: 750,
    syncCheck: canCountSyncs(),
    log: () => {},
  })
  expect(report.violations.examples, crashSummary(20_260, report)).toEqual([])
  expect(report.http.sent).toBeGreaterThan(0)
  expect(report.http.received).toBeGreaterThan(0)
  expect(report.http.published).toBeGreaterThan(0)
  expect(report.core.acked).toBeGreaterThan(0)
})

test(
  'crash - kill -9 around durable agents loses no request, and shows no event twice',
  { timeout: 120_000 },
  async () => {
    const report = await agentCrash({ engines: ['embedded'], seed: 7, rounds: 2, maxLifeMs: 400, log: () => {} })
    expect(report.violations.examples, agentSummary(7, report)).toEqual([])
    expect(report.figures[0]?.[1].ends.get('TASK_STATE_COMPLETED')).toBeGreaterThan(0)
  },
)

test(
  'crash - kill -9 around the due times of schedules loses none, and sends none twice',
  { timeout: 120_000 },
  async () => {
    const report = await scheduleCrash({ engines: ['embedded'], seed: 3, rounds: 2, log: () => {} })
    expect(report.violations.examples, scheduleSummary(3, report)).toEqual([])
    expect(report.figures[0]?.[1].dueTimes).toBe(20)
  },
)

test('crash - an acknowledged message that never comes is called lost', () => {
  const violations = new Violations()
  const ledger = new QueueLedger(violations, 500)
  ledger.acknowledge(ledger.begin('q', PLAIN, 0), 1, false)
  ledger.acknowledge(ledger.begin('q', { ...PLAIN, expirationMs: 1000 }, 0), 1, false)
  ledger.finish()
  expect(violations.count('lost')).toBe(1)
})

test('crash - a second delivery is allowed inside the settle window before a kill, and nowhere else', () => {
  const violations = new Violations()
  const ledger = new QueueLedger(violations, 500)
  const body = ledger.body(ledger.begin('q', PLAIN, 0))
  ledger.receive(body, 1, 0, 100)
  ledger.killed(1, 600)
  ledger.receive(body, 2, 1000, 1001)
  expect([ledger.again, violations.total]).toEqual([1, 0])
  ledger.receive(body, 2, 1000, 1002)
  expect(violations.count('doubled')).toBe(1)
  ledger.killed(2, 2000)
  ledger.receive(body, 3, 3000, 3001)
  expect(violations.count('doubled')).toBe(2)
})

test('crash - early, expired, unknown and twice stored messages are found', () => {
  const violations = new Violations()
  const ledger = new QueueLedger(violations, 500)
  ledger.receive('nobody#1', 1, 0, 0)
  ledger.receive(ledger.body(ledger.begin('q', { ...PLAIN, delayMs: 1000 }, 0)), 1, 0, 900)
  const expiring = ledger.begin('q', { ...PLAIN, expirationMs: 1000 }, 0)
  ledger.acknowledge(expiring, 10, false)
  ledger.receive(ledger.body(expiring), 1, 1100, 1101)
  const retried = ledger.begin('q', { ...PLAIN, retried: true }, 0)
  ledger.receive(ledger.body(retried), 1, 0, 5)
  retried.attempts++
  ledger.receive(ledger.body(retried), 1, 0, 6)
  expect(['unknown', 'early', 'expired', 'dedupDouble'].map((kind) => violations.count(kind as 'early'))).toEqual([
    1, 1, 1, 1,
  ])
})

test('crash - gaps, repeats, losses and changes of an events store are found', () => {
  const violations = new Violations()
  const store = new StoreLedger('s', violations)
  const at = '2026-01-01T00:00:00.000Z'
  const [a, b, c] = [store.nextBody(), store.nextBody(), store.nextBody()]
  store.acknowledge(a, 1)
  store.acknowledge(c, 2)
  store.take(1, [
    { body: a, sequence: 1, timestamp: at },
    { body: b, sequence: 2, timestamp: at },
    { body: a, sequence: 3, timestamp: at },
    { body: b, sequence: 5, timestamp: at },
  ])
  store.take(2, [{ body: c, sequence: 2, timestamp: at }])
  store.finish(2)
  expect(violations.count('storeRepeat')).toBe(1)
  expect(violations.count('storeGap')).toBe(1)
  expect(violations.count('storeChanged')).toBe(3)
  expect(violations.count('storeLost')).toBe(1)
})
