import { globSync } from 'node:fs'

import { expect, test } from 'vitest'

import { readInput, replay } from '../fuzz/findings.ts'
import { summary } from '../fuzz/report.ts'
import { fuzz } from '../fuzz/run.ts'
import { TARGETS } from '../fuzz/targets/index.ts'
import { TemporaryFolder } from '../harness/temporary.ts'

const regressions = globSync('fuzz/regressions/*.json', { cwd: `${import.meta.dirname}/..` })
  .toSorted()
  .map((file) => readInput(`${import.meta.dirname}/../${file}`))

test.each(regressions)('fuzz - $target: $name', async (stored) => {
  const finding = await replay(TARGETS, stored)
  expect(finding, finding?.message).toBeUndefined()
})

test('fuzz - every target takes inputs of its grammar, and nothing is found', async () => {
  await using out = await TemporaryFolder.create('fuzz')
  const reports = await fuzz({ targets: TARGETS, milliseconds: 2_000, seed: 1, out: out.path, log: () => {} })
  expect(
    reports.flatMap(({ findings }) => findings),
    summary(reports),
  ).toEqual([])
  expect(reports.filter(({ inputs }) => inputs === 0)).toEqual([])
})
