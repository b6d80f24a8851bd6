import { expect, test } from 'vitest'

import { runDay } from './day.ts'

/** A simulated day takes 100 s. */
const SPEED = 864

const COUNT = 20

test('kills - a message that is not delivered for a day becomes a dead letter, and the others are delivered', async () => {
  const report = await runDay({ kills: 100, speed: SPEED, count: COUNT })
  const { kills, attempts, attemptsOf, hours, letters, accepted } = report
  process.stdout.write(
    `${JSON.stringify({ kills, attempts, attemptsOf, hours, letters, accepted: accepted.length })}\n`,
  )
  expect(kills).toBeGreaterThanOrEqual(100)
  // A restart takes up to an hour of the simulated day, and is followed by an attempt.
  expect(hours).toBeGreaterThan(22)
  expect(hours).toBeLessThan(26)
  expect(letters.map(({ body }) => body)).toEqual(letters.map((_, n) => String(n)))
  for (const { tags } of letters) {
    expect(tags).toMatchObject({
      webhook_reason: 'not delivered within 86400 s: the endpoint answered 503',
      webhook_status: '503',
      webhook_answer: 'down',
    })
  }
  // A kill can come between an answer and the write that counts its attempt.
  for (const { body, tags } of letters) {
    const seen = attemptsOf[Number(body)] ?? 0
    expect(Number(tags['webhook_attempts'])).toBeLessThanOrEqual(seen)
    expect(Number(tags['webhook_attempts'])).toBeGreaterThan(seen * 0.8)
  }
  const rest = Array.from({ length: COUNT - letters.length }, (_, i) => i + letters.length)
  expect([...new Set(accepted)]).toEqual(rest)
})
