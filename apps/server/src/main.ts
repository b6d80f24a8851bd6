#!/usr/bin/env node
import module from 'node:module'
import process from 'node:process'
import v8 from 'node:v8'

// Checked before other modules are loaded: under an older Node they would fail with a stack that
// does not name the reason.
const NEEDED = [22, 19] as const
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  process.stderr.write(`signalbox: Node ${NEEDED.join('.')} or newer is needed; this is ${process.versions.node}\n`)
  process.exitCode = 1
} else {
  // If many requests wait, V8 learns that the objects of a request live long, and then allocates
  // such objects, including those of short requests, in the old generation. There they are garbage
  // that keeps whole requests alive, and collections that took 5 ms take 20 to 40 ms
  // (docs/decisions/0005).
  v8.setFlagsFromString('--no-allocation-site-pretenuring')
  const { compileCacheFolder } = await import('./lifecycle/compile-cache.ts')
  const folder = compileCacheFolder()
  // Halves the time of every start but the first. A folder that is not writable is no error.
  // NODE_COMPILE_CACHE and NODE_DISABLE_COMPILE_CACHE take precedence.
  if (folder !== undefined) module.enableCompileCache(folder)
  const { run } = await import('./cli.ts')
  await run(process.argv.slice(2), process.env)
}
