import { expect, test } from 'vitest'

import { atFileLimit, fileLimitProblems, idleConnections } from '../load/idle-connections.ts'

test(
  'S8 - soak: thousands of idle connections block no other client, and need little memory',
  { timeout: 60_000 },
  async () => {
    const report = await idleConnections({ connections: 3_000, untilClosed: false, log: () => {} })
    expect(report.problems).toEqual([])
    expect(report.connections).toBe(3_000)
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
