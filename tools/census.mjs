// Prints the size of the code base, and the number of source files that five journeys run through. The numbers show the
// price of a change: run it before and after.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/** A file with fewer lines than this and only one importer belongs into the file that imports it. */
const SMALL = 60

const files = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.mjs'], { cwd: ROOT, encoding: 'utf8' })
  .split('\n')
  .filter((file) => /^(?:packages|apps|tools|examples)\//.test(file) && !file.includes('/api/'))
const linesOf = new Map(files.map((file) => [file, readFileSync(join(ROOT, file), 'utf8').split('\n').length - 1]))

const isTest = (file) => /\/test\//.test(file)
const isTool = (file) => /^(?:tools|packages\/testkit)\//.test(file)
const source = files.filter((file) => /^(?:packages|apps)\/[^/]+\/src\//.test(file) && !isTool(file))
const tools = files.filter((file) => isTool(file) && !isTest(file))
const tests = files.filter(isTest)

const sum = (some) => some.reduce((total, file) => total + linesOf.get(file), 0)
const row = (title, value) => console.log(`${title.padEnd(58)} ${value}`)
const size = (some) =>
  `${sum(some).toLocaleString('en')} lines, ${some.length.toLocaleString('en')} files, ${Math.round(sum(some) / some.length)} lines each`

row('source of packages and apps', size(source))
row('tools and testkit', size(tools))
row('tests', size(tests))
row(`source files of fewer than ${SMALL} lines with one importer`, smallWithOneImporter().length)
row('source files of more than 420 lines', source.filter((file) => linesOf.get(file) > 420).length)
row('exported names of http-kit', exportedNames('packages/http-kit/src/index.ts'))
for (const [journey, count] of Object.entries(journeys())) row(`files that run for ${journey}`, count)

function smallWithOneImporter() {
  const importers = new Map(source.map((file) => [file, 0]))
  for (const file of source) {
    const text = readFileSync(join(ROOT, file), 'utf8')
    const found = [...text.matchAll(/(?:from|import\()\s*'(\.{1,2}\/[^']+)'/g)].map(([, path]) =>
      join(file, '..', path),
    )
    for (const path of new Set(found)) if (importers.has(path)) importers.set(path, importers.get(path) + 1)
  }
  return source.filter((file) => linesOf.get(file) < SMALL && importers.get(file) === 1)
}

function exportedNames(entry) {
  const text = readFileSync(join(ROOT, entry), 'utf8')
  const lists = [...text.matchAll(/export (?:type )?\{([^}]*)\}/g)].flatMap(([, names]) => names.split(','))
  return lists.filter((name) => name.trim() !== '').length + [...text.matchAll(/export \* as /g)].length
}

/** Counts on a running server, because lists of files by hand are out of date with the next change. */
function journeys() {
  const args = ['--conditions=@signalbox/source', join(import.meta.dirname, 'census/journeys.ts')]
  return JSON.parse(execFileSync(join(ROOT, 'node_modules/.bin/node'), args, { cwd: ROOT, encoding: 'utf8' }))
}
