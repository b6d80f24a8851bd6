import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

import { expect, test } from 'vitest'

const INDEX = new URL('../src/index.ts', import.meta.url).href

/** Imports the package in a process that calls itself another version of Node. */
async function importOn(version: string): Promise<string> {
  const program = `
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })
    await import('${INDEX}')
    console.log('imported')`
  const args = ['--conditions=@signalbox/source', '--input-type=module', '-e', program]
  return promisify(execFile)(process.execPath, args).then(
    ({ stdout }) => stdout.trim(),
    (error: unknown) => String(Reflect.get(Object(error), 'stderr')),
  )
}

test.each(['18.20.4', '20.20.2', '22.18.9'])('versions - Node %s is refused with an explanation', async (version) => {
  expect(await importOn(version)).toContain(
    `@signalbox/engine-embedded needs Node 22.19 or newer; this is ${version}. Install a newer Node.`,
  )
})

test('versions - the oldest supported Node is that of the manifest', async () => {
  const manifest = await readFile(new URL('../package.json', import.meta.url), 'utf8')
  expect(JSON.parse(manifest)).toMatchObject({ engines: { node: '>=22.19' } })
  expect(await importOn('22.19.0')).toBe('imported')
})
