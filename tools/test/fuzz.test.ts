import { globSync } from 'node:fs'

import { expect, test } from 'vitest'

import { readInput, replay } from '../fuzz/findings.ts'
import { summary } from '../fuzz/report.ts'
import type { TargetReport } from '../fuzz/run.ts'
import { fuzz } from '../fuzz/run.ts'
import type { Target } from '../fuzz/target.ts'
import { TARGETS } from '../fuzz/targets/index.ts'
import { TemporaryFolder } from '../harness/temporary.ts'

const regressions = globSync('fuzz/regressions/*.json', { cwd: `${import.meta.dirname}/..` })
  .toSorted()
  .map((file) => readInput(`${import.meta.dirname}/../${file}`))

test.each(regressions)('fuzz - $target: $name', async (stored) => {
  const finding = await replay(TARGETS, stored)
  expect(finding, finding?.message).toBeUndefined()
})

async function findings(targets: readonly Target[], milliseconds: number): Promise<readonly TargetReport[]> {
  await using out = await TemporaryFolder.create('fuzz')
  const reports = await fuzz({ targets, milliseconds, seed: 1, out: out.path, log: () => {} })
  expect(
    reports.flatMap(({ findings }) => findings),
    summary(reports),
  ).toEqual([])
  return reports
}

test('fuzz - every parser takes inputs of its grammar, and nothing is found', async () => {
  const reports = await findings(
    TARGETS.filter(({ name }) => !name.startsWith('server-')),
    1_500,
  )
  expect(reports.filter(({ inputs }) => inputs === 0)).toEqual([])
})

test('fuzz - a running server takes requests of every grammar, and nothing is found', { timeout: 60_000 }, async () => {
  const reports = await findings(
    TARGETS.filter(({ name }) => name === 'server-http'),
    500,
  )
  expect(reports.filter(({ inputs }) => inputs === 0)).toEqual([])
})
