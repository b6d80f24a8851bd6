import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { parseRoutingTable } from '@signalbox/broker-core'
import { compileCesql } from '@signalbox/broker-core/internal'

const page = readFileSync(new URL('../../../docs/guides/routing.md', import.meta.url), 'utf8')

const tables = Array.from(page.matchAll(/```json\n([^]*?)```/g), ([, source = '']) => source)

test('routing docs - there are tables to look at', () => {
  expect(tables.length).toBeGreaterThanOrEqual(4)
})

test.each(tables)('routing docs - the table %s is valid', (source) => {
  expect(parseRoutingTable(JSON.parse(source)).rules.length).toBeGreaterThan(0)
})

test('routing docs - every function named is there', () => {
  const row = /^\| functions .*$/m.exec(page)?.[0] ?? ''
  const names = Array.from(row.matchAll(/`([A-Z_]+)`/g), ([, name = '']) => name)
  expect(names).toHaveLength(15)
  for (const name of names) {
    // A known function may complain of the number of arguments, but not that it does not exist.
    expect(complaint(`${name}(1, 1, 1, 1, 1)`)).not.toContain(`there is no function ${name};`)
  }
})

function complaint(expression: string): string {
  try {
    compileCesql(expression)
    return ''
  } catch (error) {
    return String(error)
  }
}
