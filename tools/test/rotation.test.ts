import { expect, test } from 'vitest'

import { rotateCertificates, rotateKeys, rotationProblems } from '../load/rotation.ts'

test('S1 - soak: keys behind a URL rotate under load without a failed request', { timeout: 60_000 }, async () => {
  const report = await rotateKeys({ seconds: 5, clients: 16, intervalMs: 1_000, source: 'url' })
  expect(rotationProblems(report)).toEqual([])
  expect(report.rotations).toBeGreaterThan(2)
})

test('S8 - soak: certificates rotate under load without a dropped request', { timeout: 60_000 }, async () => {
  const report = await rotateCertificates({ seconds: 2, clients: 16, intervalMs: 50 })
  expect(rotationProblems(report)).toEqual([])
})

test('soak - a failed request, a rotation without effect, and a run without requests are problems', () => {
  const good = { seconds: 1, requests: 5, failures: [], rotations: 1, takenUp: 2, exitCode: 0 }
  expect(rotationProblems(good)).toEqual([])
  expect(rotationProblems({ ...good, failures: ['ECONNRESET'] })).toEqual(['1 requests failed: ECONNRESET'])
  expect(rotationProblems({ ...good, takenUp: 0, exitCode: 1 })).toHaveLength(2)
  expect(rotationProblems({ ...good, requests: 0, rotations: 0 })).toHaveLength(2)
})
