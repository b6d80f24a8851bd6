// The second net under the lint: the dependency graph itself must agree with the table of packages in docs/architecture.md.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ALL = Symbol('every package')

/** Which of our packages each package may depend on. */
const PACKAGES = {
  '@signalbox/broker-core': [],
  '@signalbox/engine-embedded': ['@signalbox/broker-core'],
  '@signalbox/engine-nats': ['@signalbox/broker-core'],
  '@signalbox/http-kit': ['@signalbox/broker-core'],
  '@signalbox/registry': ['@signalbox/broker-core', '@signalbox/http-kit'],
  '@signalbox/connector-mcp': ['@signalbox/broker-core', '@signalbox/http-kit'],
  '@signalbox/connector-a2a': ['@signalbox/broker-core', '@signalbox/http-kit', '@signalbox/registry'],
  '@signalbox/connector-cloudevents': ['@signalbox/broker-core', '@signalbox/http-kit'],
  '@signalbox/management-api': ['@signalbox/broker-core', '@signalbox/http-kit'],
  '@signalbox/console': [],
  signalbox: ALL,
  '@signalbox/tools': ALL,
  '@signalbox/examples': ALL,
}

/** Tests may use a real engine and a real server; only what is shipped is bound by the table. */
function shipped(file) {
  return !/(^|\/)test\//.test(file)
}

const folder = mkdtempSync(join(tmpdir(), 'signalbox-graph-'))
try {
  const file = join(folder, 'graph.json')
  execFileSync('nx', ['graph', `--file=${file}`], { stdio: ['ignore', 'ignore', 'inherit'] })
  const { nodes, dependencies } = JSON.parse(readFileSync(file, 'utf8')).graph
  const problems = []
  for (const [name, { data }] of Object.entries(nodes)) {
    const allowed = PACKAGES[name]
    if (allowed === undefined) problems.push(`${name} is missing from the table of packages`)
    if (allowed === undefined || allowed === ALL) continue
    const manifest = JSON.parse(readFileSync(join(data.root, 'package.json'), 'utf8'))
    const declared = { ...manifest.dependencies, ...manifest.peerDependencies, ...manifest.optionalDependencies }
    for (const { target, source, sourceFile } of dependencies[name]) {
      if (sourceFile !== undefined && !shipped(sourceFile)) continue
      if (manifest.devDependencies?.[target] !== undefined && declared[target] === undefined) continue
      if (!allowed.includes(target)) problems.push(`${source} must not depend on ${target}`)
    }
    for (const dependency of Object.keys(declared)) {
      if (dependency in PACKAGES && !allowed.includes(dependency))
        problems.push(`${name} must not declare ${dependency}`)
    }
  }
  for (const problem of new Set(problems)) console.error(problem)
  if (problems.length > 0) process.exitCode = 1
  else console.log(`boundaries: ${Object.keys(nodes).length} packages, all within the table`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
