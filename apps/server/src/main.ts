#!/usr/bin/env node
import module from 'node:module'
import process from 'node:process'
import v8 from 'node:v8'

// Checked before anything else is loaded: under an older Node the rest would fail with a stack that explains nothing.
const NEEDED = [22, 19] as const
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  process.stderr.write(`signalbox: Node ${NEEDED.join('.')} or newer is needed; this is ${process.versions.node}\n`)
  process.exitCode = 1
} else {
  // Where many requests wait, V8 sees that what belongs to a request lives long, and from then on puts such objects, those
  // of short requests too, right into the old generation. There they are garbage that keeps whole requests alive, and
  // collections that took 5 ms take 20 to 40 (docs/decisions/0005).
  v8.setFlagsFromString('--no-allocation-site-pretenuring')
  const { compileCacheFolder } = await import('./lifecycle/compile-cache.ts')
  const folder = compileCacheFolder()
  // Halves every start but the first. A folder that cannot be written is no error. Where NODE_COMPILE_CACHE or
  // NODE_DISABLE_COMPILE_CACHE is set, that holds.
  if (folder !== undefined) module.enableCompileCache(folder)
  const { run } = await import('./cli.ts')
  await run(process.argv.slice(2), process.env)
}
