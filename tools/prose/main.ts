import { globSync, readFileSync, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'

import { commandLine, flag } from '@signalbox/testkit/command-line'

import type { Problem } from './check.ts'
import { checkProse } from './check.ts'

const ROOT = join(import.meta.dirname, '../..')
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

const { values, positionals } = commandLine(
  {
    usage: 'npm run prose -- [options] [PATH…]',
    about: `Checks comments, messages and Markdown against the project's style (tools/prose/README.md).
Without a path: every file. With paths: these files and folders. Exits with 1 if a file has a problem.`,
  },
  { counts: flag('prints the counts by rule, without the problems') },
)
run()

function run(): void {
  const chosen = positionals.map((path) => relative(ROOT, resolve(path)))
  const missing = chosen.filter((path) => statSync(join(ROOT, path), { throwIfNoEntry: false }) === undefined)
  if (missing.length > 0) throw new Error(`no such file or folder: ${missing.join(', ')}`)
  const files = proseFiles().filter((file) => chosen.length === 0 || chosen.some((path) => contains(path, file)))
  const problems = files.flatMap(problemsOf)
  if (!values.counts) {
    for (const { path, line, column, rule, message } of problems)
      console.log(`${path}:${line}:${column} ${rule} ${message}`)
  }
  if (problems.length > 0 || chosen.length > 0) printCounts(problems)
  console.log(`prose: ${files.length} files, ${problems.length} problems`)
  if (problems.length > 0) process.exitCode = 1
}

function printCounts(problems: readonly Problem[]): void {
  const counts = new Map<string, number>()
  for (const { rule } of problems) counts.set(rule, (counts.get(rule) ?? 0) + 1)
  for (const [rule, count] of [...counts].toSorted((a, b) => b[1] - a[1]))
    console.log(`${String(count).padStart(6)}  ${rule}`)
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
