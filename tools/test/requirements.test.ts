import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { REQUIREMENTS } from '../requirements/index.ts'

const root = join(import.meta.dirname, '../..')
const id = String.raw`[A-Z]{1,6}-?\d{1,3}`
/** A test's name cites at its start: `M8 - …`, `M7, TOOL-1 - …`. */
const citation = new RegExp(String.raw`['"\x60](${id}(?:, ${id})*) - `, 'g')

const cited = new Map<string, string>()
for (const file of globSync(
  [
    '{packages,apps}/*/test/**/*.test.ts',
    '{tools,examples}/test/**/*.test.ts',
    'packages/broker-core/src/testing/**/*.ts',
  ],
  { cwd: root },
)) {
  for (const [, ids = ''] of readFileSync(join(root, file), 'utf8').matchAll(citation)) {
    for (const one of ids.split(', ')) cited.set(one, file)
  }
}

test('requirements - ids are unique', () => {
  expect(REQUIREMENTS.map((requirement) => requirement.id)).toEqual([
    ...new Set(REQUIREMENTS.map((requirement) => requirement.id)),
  ])
})

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
