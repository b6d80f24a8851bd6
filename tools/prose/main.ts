import { globSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'

import type { Problem } from './check.ts'
import { checkProse } from './check.ts'

const HELP = `npm run prose -- [options] [PATH…]

Checks comments, messages and Markdown against the project's style (tools/prose/README.md).
Without a path: every file, except the ones in tools/prose/pending.json. With paths: these files and folders.

  --counts    prints the counts by rule, without the problems
  --prune     removes the entries of pending.json that have no problem left

Exits with 1 if a file has a problem.`

const ROOT = join(import.meta.dirname, '../..')
const PENDING = join(import.meta.dirname, 'pending.json')
const PROSE = [
  '*.md',
  'docs/**/*.md',
  'packages/*/README.md',
  'packages/*/src/**/*.ts',
  'apps/*/README.md',
  'apps/*/src/**/*.ts',
  'tools/**/*.{md,ts,mjs}',
  'examples/**/*.{md,ts}',
]
/** The rules quote the phrases that they forbid, and tests use them as data. Changelogs come from commits. */
const EXEMPT = /(?:^|\/)(?:node_modules|dist|out-tsc|results|test)\/|^tools\/prose\/|(?:^|\/)CHANGELOG\.md$/

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { counts: { type: 'boolean' }, prune: { type: 'boolean' }, help: { type: 'boolean' } },
})
if (values.help === true) console.log(HELP)
else if (values.prune === true) prune()
else run()

function run(): void {
  const pending = readPending()
  const chosen = positionals.map((path) => relative(ROOT, resolve(path)))
  const missing = chosen.filter((path) => statSync(join(ROOT, path), { throwIfNoEntry: false }) === undefined)
  if (missing.length > 0) throw new Error(`no such file or folder: ${missing.join(', ')}`)
  const files = proseFiles().filter((file) =>
    chosen.length > 0 ? chosen.some((path) => contains(path, file)) : !pending.some((path) => contains(path, file)),
  )
  const problems = files.flatMap(problemsOf)
  if (values.counts !== true) {
    for (const { path, line, column, rule, message } of problems)
      console.log(`${path}:${line}:${column} ${rule} ${message}`)
  }
  if (problems.length > 0 || chosen.length > 0) printCounts(problems)
  const held = chosen.length > 0 ? '' : `; ${pending.length} paths are not yet checked (tools/prose/pending.json)`
  console.log(`prose: ${files.length} files, ${problems.length} problems${held}`)
  if (problems.length > 0) process.exitCode = 1
}

function printCounts(problems: readonly Problem[]): void {
  const counts = new Map<string, number>()
  for (const { rule } of problems) counts.set(rule, (counts.get(rule) ?? 0) + 1)
  for (const [rule, count] of [...counts].toSorted((a, b) => b[1] - a[1]))
    console.log(`${String(count).padStart(6)}  ${rule}`)
}

/** Removes every pending path that is gone or has no problem left. */
function prune(): void {
  const files = proseFiles()
  const pending = readPending()
  const left = pending.filter((path) => files.some((file) => contains(path, file) && problemsOf(file).length > 0))
  writeFileSync(PENDING, `${JSON.stringify(left, undefined, 2)}\n`)
  console.log(`prose: ${pending.length - left.length} entries removed, ${left.length} left`)
}

function readPending(): readonly string[] {
  const pending: unknown = JSON.parse(readFileSync(PENDING, 'utf8'))
  if (!Array.isArray(pending) || !pending.every((path) => typeof path === 'string')) {
    throw new Error('tools/prose/pending.json must be a list of paths')
  }
  return pending
}

function proseFiles(): string[] {
  return globSync(PROSE, { cwd: ROOT, exclude: (name) => name === 'node_modules' })
    .filter((file) => !EXEMPT.test(file))
    .toSorted()
}

function problemsOf(file: string): Problem[] {
  return checkProse(file, readFileSync(join(ROOT, file), 'utf8'))
}

/** Returns whether `path` is the file, or a folder around it. */
function contains(path: string, file: string): boolean {
  return path === '' || file === path || file.startsWith(`${path}/`)
}
