import { execFile } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** Every TypeScript program that a page shows, but for the README's, which needs a server beside it. */
const programs = globSync(['docs/**/*.md', 'packages/*/README.md', 'apps/*/README.md'], { cwd: root }).flatMap(
  (page, i) =>
    [...readFileSync(join(root, page), 'utf8').matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = ''], j) => ({
      page,
      number: j + 1,
      text,
      // Among the tools, so that the workspace's packages are found.
      file: join(root, 'tools', `snippet-${process.pid}-${i}-${j}.mts`),
      /** The folder it runs in, with its store. */
      folder: mkdtempSync(join(tmpdir(), 'signalbox-snippet-')),
    })),
)

/** Runs programs one after the other, and prints which of them ended. */
const RUNNER = `
for (const { file, folder } of JSON.parse(process.argv[1])) {
  process.chdir(folder)
  try {
    await import(file)
    console.log('\\nran to its end: ' + file)
  } catch (error) {
    console.log('\\nfailed: ' + file, error)
  }
}
process.stdout.write('', () => process.exit(0))
`

let output = ''

// In one process: it takes longer to load the packages than to run a program.
beforeAll(async () => {
  for (const { file, text } of programs) writeFileSync(file, text.replaceAll('port: 9090', 'port: 0'))
  const args = ['--conditions=@signalbox/source', '--input-type=module', '--eval', RUNNER, JSON.stringify(programs)]
  output = (await promisify(execFile)(process.execPath, args, { timeout: 120_000 })).stdout
}, 130_000)

afterAll(() => {
  for (const { file, folder } of programs) {
    rmSync(file, { force: true })
    rmSync(folder, { recursive: true })
  }
})

test.each(programs)('docs - program $number of $page runs unchanged', ({ file }) => {
  expect(output).toContain(`ran to its end: ${file}`)
})
