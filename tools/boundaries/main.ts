// Checks the dependency graph that Nx sees against the table. The lint checks the imports alone.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { problemsOf } from './graph.ts'
import type { Graph, Manifest } from './graph.ts'

const folder = mkdtempSync(join(tmpdir(), 'signalbox-graph-'))
try {
  const file = join(folder, 'graph.json')
  execFileSync('nx', ['graph', `--file=${file}`], { stdio: ['ignore', 'ignore', 'inherit'] })
  const { graph } = JSON.parse(readFileSync(file, 'utf8')) as { graph: Graph }
  const problems = problemsOf(graph, (root) => JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest)
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exitCode = 1
  else console.log(`boundaries: ${Object.keys(graph.nodes).length} packages, all within the table`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
