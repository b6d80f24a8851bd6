import { globSync } from 'node:fs'

import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { sample } from 'fast-check'
import { expect, test } from 'vitest'

import { fuzz, summary } from '../hostile/fuzz/run.ts'
import { readInput, replay } from '../hostile/fuzz/target.ts'
import { TARGETS } from '../hostile/fuzz/targets/index.ts'

const regressions = globSync('hostile/fuzz/regressions/*.json', { cwd: `${import.meta.dirname}/..` })
  .toSorted()
  .map((file) => readInput(`${import.meta.dirname}/../${file}`))

function isServer({ target }: { readonly target: string }): boolean {
  return target.startsWith('server-')
}

test.each(regressions.filter((stored) => !isServer(stored)))('fuzz - $target: $name', async (stored) => {
  const finding = await replay(TARGETS, stored)
  expect(finding, finding?.message).toBeUndefined()
})

test('fuzz - every parser takes inputs of its grammar, and nothing is found', async () => {
  await using out = await TemporaryFolder.create('fuzz')
  const targets = TARGETS.filter(({ name }) => !isServer({ target: name }))
  const reports = await fuzz({ targets, milliseconds: 1_500, seed: 1, out: out.path, log: () => {} })
  expect(
    reports.flatMap(({ findings }) => findings),
    summary(reports),
  ).toEqual([])
  expect(reports.filter(({ inputs }) => inputs === 0)).toEqual([])
})

// One server for all, because each is started, killed and started again.
test('fuzz - a running server handles inputs that once broke one, and similar ones', { timeout: 60_000 }, async () => {
  const target = TARGETS.find(({ name }) => name === 'server-http')
  expect(target).toBeDefined()
  if (target === undefined) return
  await using server = await target.open()
  for (const { input } of regressions.filter(isServer)) await server.check(input)
  for (const input of sample(target.input, { numRuns: 30, seed: 1 })) await server.check(input)
  await server.settle?.()
})
