import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { REQUIREMENTS } from '../requirements/index.ts'
import { citedInSource } from '../requirements/proof.ts'

const root = join(import.meta.dirname, '../..')

const cited = new Map<string, string>()
for (const file of globSync(
  [
    '{packages,apps}/*/test/**/*.test.ts',
    '{tools,examples}/test/**/*.test.ts',
    'packages/broker-core/src/testing/**/*.ts',
  ],
  { cwd: root },
)) {
  for (const id of citedInSource(readFileSync(join(root, file), 'utf8'))) cited.set(id, file)
}

test('requirements - ids are unique', () => {
  expect(REQUIREMENTS.map((requirement) => requirement.id)).toEqual([
    ...new Set(REQUIREMENTS.map((requirement) => requirement.id)),
  ])
})

// That a test of each ran and passed is checked at the end of a full run, by the summary reporter.
test('requirements - every one is cited by a test', () => {
  expect(
    REQUIREMENTS.filter((requirement) => !cited.has(requirement.id)).map(
      (requirement) => `${requirement.id}: ${requirement.behavior}`,
    ),
  ).toEqual([])
})

test('requirements - no test cites an unknown one', () => {
  const known = new Set(REQUIREMENTS.map((requirement) => requirement.id))
  expect([...cited].filter(([one]) => !known.has(one)).map(([one, file]) => `${one} in ${file}`)).toEqual([])
})
