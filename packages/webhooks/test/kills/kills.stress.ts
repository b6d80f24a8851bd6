import { expect, test } from 'vitest'

import { runKills } from './scenario.ts'

const KILLS = 100

test('kills - an endpoint gets every stored event in order, although the broker is killed 100 times', async () => {
  const report = await runKills((kills) => kills < KILLS)
  process.stdout.write(`${JSON.stringify(report)}\n`)
  expect(report).toMatchObject({ kills: KILLS, lost: [], early: [] })
})
