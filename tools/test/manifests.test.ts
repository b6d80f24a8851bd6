import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly description: string
  readonly keywords: readonly string[]
  readonly homepage: string
  readonly bugs: string
  readonly license: string
  readonly repository: { readonly type: string; readonly url: string; readonly directory?: string }
  readonly engines: Readonly<Record<string, string>>
}

function manifestIn(folder: string): Manifest {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
}

/** The root's manifest is the one place that names the repository; the others must agree with it. */
const workspace = manifestIn('.')
const web = workspace.repository.url.replace(/^git\+|\.git$/g, '')

const published = globSync('{packages,apps}/*/package.json', { cwd: root })
  .map((path) => dirname(path))
  .filter((folder) => manifestIn(folder).private !== true)

/** The client also runs on an older Node than the packages of the server: it uses `fetch`, and no module of Node. */
const OTHER_ENGINES: Readonly<Record<string, Manifest['engines']>> = { 'packages/client': { node: '>=20.3' } }

test.each(published)('manifests - %s says what it is and where it lives', (folder) => {
  const { description, keywords, homepage, bugs, license, repository, engines } = manifestIn(folder)
  expect(description).toMatch(/^[A-Z][^.]{20,120}\.$/)
  expect(keywords).toContain('signalbox')
  expect(keywords).toEqual([...new Set(keywords)].toSorted())
  expect(homepage).toBe(`${web}/tree/main/${folder}#readme`)
  expect(bugs).toBe(`${web}/issues`)
  expect(license).toBe(workspace.license)
  expect(repository).toEqual({ ...workspace.repository, directory: folder })
  expect(engines).toEqual(OTHER_ENGINES[folder] ?? workspace.engines)
})
