import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { PARTS, secondsOf } from '../stress/plan.ts'

const { scripts } = JSON.parse(readFileSync(`${import.meta.dirname}/../../package.json`, 'utf8')) as {
  scripts: Readonly<Record<string, string>>
}

test('stress - every part is a script of the workspace, and has a name of its own', () => {
  expect(PARTS.map(({ command }) => command(60)[0]).filter((script) => !(`${script}` in scripts))).toEqual([])
  expect(new Set(PARTS.map(({ name }) => name)).size).toBe(PARTS.length)
})

test('stress - the parts share the minutes', () => {
  const seconds = [...secondsOf(PARTS, 10).values()]
  expect(seconds.reduce((sum, each) => sum + each, 0)).toBeCloseTo(600)
  expect(Math.min(...seconds)).toBeGreaterThan(0)
})
