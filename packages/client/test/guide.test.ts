import { execFile } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { expect, onTestFinished, test } from 'vitest'

import { CLIENT_ERRORS } from '../src/index.ts'
import { TestServer } from './server.ts'

const GUIDE = readFileSync(join(import.meta.dirname, '../../../docs/guides/client.md'), 'utf8')

test('guide - the programs of the page run against a server', async () => {
  const server = await TestServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  const parts = [...GUIDE.matchAll(/^```typescript\n(.*?)^```$/gms)].map(([, part = '']) => part)
  expect(parts).toHaveLength(8)
  const program = [
    "import { connect, Reject } from '@signalbox/client'",
    "const sb = connect('http://127.0.0.1:9090')",
    ...parts,
    'await sb.close()',
    "console.log('ran to its end')",
  ]
  // In this folder, so that the workspace's packages are found.
  const file = join(import.meta.dirname, `guide-${process.pid}.mts`)
  onTestFinished(() => rmSync(file))
  writeFileSync(file, program.join('\n').replaceAll('http://127.0.0.1:9090', server.url))
  const run = promisify(execFile)
  const { stdout } = await run(process.execPath, ['--conditions=@signalbox/source', file], { timeout: 60_000 })
  // The subscriber prints its event when it arrives.
  const lines = stdout.trimEnd().split('\n')
  expect(lines.toSorted()).toEqual(['1 12', '7 1', '9.5', '[]', 'orders.eu 7', 'ran to its end'])
  expect(lines.at(-1)).toBe('ran to its end')
}, 90_000)

test('guide - the page lists every code of the client', () => {
  const [, table = ''] = /<!-- codes of the client -->(.*)<!-- \/codes -->/s.exec(GUIDE) ?? []
  const rows = [...table.matchAll(/^\| `([A-Z_]+)` +\| (.*?) +\|$/gm)].map(([, code, when]) => [code, when])
  expect(Object.fromEntries(rows)).toEqual(CLIENT_ERRORS)
})
