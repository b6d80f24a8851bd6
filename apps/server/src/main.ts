#!/usr/bin/env node
import process from 'node:process'

// Checked before anything else is loaded: under an older Node the rest would fail with a stack that explains nothing.
const NEEDED = [22, 19] as const
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  process.stderr.write(`signalbox: Node ${NEEDED.join('.')} or newer is needed; this is ${process.versions.node}\n`)
  process.exitCode = 1
} else {
  const { run } = await import('./cli.ts')
  await run(process.argv.slice(2), process.env)
}
