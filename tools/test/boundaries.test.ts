import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { problemsOf } from '../boundaries/graph.ts'
import { BOUNDARIES, shortName } from '../boundaries/table.ts'

const root = join(import.meta.dirname, '../..')

/** Reads the rows of the table in docs/architecture.md: the folder first, the imports last. */
function documentedBoundaries(): Record<string, string> {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  const names = new Set(BOUNDARIES.map((row) => shortName(row.package)))
  const rows: Record<string, string> = {}
  for (const [, folder = '', imports = ''] of page.matchAll(
    /^\| `((?:packages|apps)\/[\w-]+|tools|examples)` .*\|([^|\n]+)\|$/gm,
  )) {
    const list = imports.split(',').map((name) => name.replaceAll(/[`\s]|@signalbox\//g, ''))
    rows[folder] = list.includes('all') ? 'all' : list.filter((name) => names.has(name)).join(', ')
  }
  return rows
}

function importsOf(name: string): readonly string[] | undefined {
  return BOUNDARIES.find((row) => row.package === name)?.imports
}

test('boundaries - the table in docs/architecture.md agrees with table.json', () => {
  const present = BOUNDARIES.filter(({ folder }) => existsSync(join(root, folder, 'package.json')))
  expect(documentedBoundaries()).toEqual(
    Object.fromEntries(present.map((row) => [row.folder, row.all ? 'all' : row.imports.map(shortName).join(', ')])),
  )
})

test('boundaries - each folder holds the package of its row', () => {
  for (const row of BOUNDARIES) {
    const file = join(root, row.folder, 'package.json')
    if (!existsSync(file)) continue
    const manifest = JSON.parse(readFileSync(file, 'utf8')) as { name: string; private?: boolean }
    expect({ name: manifest.name, private: manifest.private === true }).toEqual({
      name: row.package,
      private: row.private,
    })
  }
})

test('boundaries - dependencies outside the table are reported, those of tests are not', () => {
  const name = '@signalbox/registry'
  const dependencies = {
    [name]: [
      { source: name, target: '@signalbox/http-kit', sourceFile: 'packages/registry/src/a.ts' },
      { source: name, target: '@signalbox/connector-mcp', sourceFile: 'packages/registry/src/a.ts' },
      { source: name, target: '@signalbox/engine-embedded', sourceFile: 'packages/registry/test/a.ts' },
      { source: name, target: '@signalbox/testkit' },
    ],
  }
  const nodes = { [name]: { data: { root: 'packages/registry' } }, stray: { data: { root: 'packages/stray' } } }
  const manifest = { devDependencies: { '@signalbox/testkit': '*' }, dependencies: { '@signalbox/console': '*' } }
  expect(problemsOf({ nodes, dependencies }, () => manifest)).toEqual([
    '@signalbox/registry must not depend on @signalbox/connector-mcp',
    '@signalbox/registry must not declare @signalbox/console',
    'stray is not in tools/boundaries/table.json',
  ])
})

test('boundaries - private packages are open to private packages and to the one that bundles them', () => {
  expect(importsOf('signalbox')).toContain('@signalbox/console')
  expect(importsOf('signalbox')).toContain('@signalbox/cli')
  expect(importsOf('signalbox')).not.toContain('@signalbox/testkit')
  expect(importsOf('@signalbox/tools')).toContain('@signalbox/testkit')
})
