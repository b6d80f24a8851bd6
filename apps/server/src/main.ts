#!/usr/bin/env node
import module from 'node:module'
import process from 'node:process'

import { compileCacheFolder } from './lifecycle/compile-cache.ts'

// Checked before most modules are loaded: under an older Node they would fail with a stack that
// does not name the reason.
const NEEDED = [22, 19] as const
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  process.stderr.write(`signalbox: Node ${NEEDED.join('.')} or newer is needed; this is ${process.versions.node}\n`)
  process.exitCode = 1
} else {
  const folder = compileCacheFolder()
  // Halves the time of every start but the first. A folder that is not writable is no error.
  // NODE_COMPILE_CACHE and NODE_DISABLE_COMPILE_CACHE take precedence.
  if (folder !== undefined) module.enableCompileCache(folder)
  const { run } = await import('./cli.ts')
  await run(process.argv.slice(2), process.env)
}
