import { expect, test } from 'vitest'

import { runKills } from './scenario.ts'

test('kills - an endpoint gets every stored event in order, although the broker is killed and the endpoint is down', async () => {
  const report = await runKills((kills) => kills < 2)
  expect(report).toMatchObject({ kills: 2, lost: [], early: [] })
  expect(report.published).toBeGreaterThan(0)
}, 120_000)
