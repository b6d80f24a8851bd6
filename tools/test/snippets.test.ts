import { execFile } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { expect, onTestFinished, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** Every TypeScript program that a page shows, but for the README's, which needs a server beside it. */
const snippets = globSync(['docs/**/*.md', 'packages/*/README.md', 'apps/*/README.md'], { cwd: root }).flatMap((page) =>
  [...readFileSync(join(root, page), 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)].map(([, program = ''], i) => ({
    page,
    number: i + 1,
    program,
  })),
)

test.each(snippets)('docs - program $number of $page runs as it stands', async ({ program }) => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-snippet-'))
  // Among the tools, so that the workspace's packages are found; the store is in the folder the program runs in.
  const file = join(root, 'tools', `snippet-${process.pid}-${Math.random().toString(36).slice(2)}.mts`)
  onTestFinished(() => {
    rmSync(file)
    rmSync(folder, { recursive: true })
  })
  writeFileSync(
    file,
    `${program.replaceAll('port: 9090', 'port: 0')}\nprocess.stdout.write('ran to its end', () => process.exit(0))\n`,
  )
  const { stdout } = await promisify(execFile)(process.execPath, ['--conditions=@signalbox/source', file], {
    cwd: folder,
    timeout: 60_000,
  })
  expect(stdout).toContain('ran to its end')
})
