import { expect, test } from 'vitest'

import { soak, soakProblems } from '../load/messages.ts'
import { webhookSoak } from '../load/webhooks.ts'

test('soak - long polls and senders at once lose and double nothing', { timeout: 90_000 }, async () => {
  const report = await soak({
    warmUpSeconds: 0,
    seconds: 2,
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
