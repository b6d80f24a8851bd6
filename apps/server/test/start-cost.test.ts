import { expect, test } from 'vitest'

import { startCli } from './support/cli.ts'

/**
 * Prints, when the server is ready, the files that the main thread has loaded, the number of files that were loaded
 * when pretenuring was switched off, and whether Node has loaded the client of `fetch`.
 */
const PRELOAD = `
import { registerHooks } from 'node:module'
import v8 from 'node:v8'
const files = []
let beforeFlag = 0
const { setFlagsFromString } = v8
v8.setFlagsFromString = (flag) => {
  if (flag === '--no-allocation-site-pretenuring') beforeFlag = files.length
  setFlagsFromString(flag)
}
registerHooks({
  load(url, context, next) {
    if (url.startsWith('file:')) files.push(url)
    return next(url, context)
  },
})
process.once('exit', () => {
  const fetchClient = process.moduleLoadList.some((name) => name.includes('deps/undici/undici'))
  process._rawDebug(JSON.stringify({ fetchClient, files, beforeFlag }))
})
`

interface Loaded {
  readonly fetchClient: boolean
  readonly files: readonly string[]
  readonly beforeFlag: number
}

let loaded: Promise<Loaded> | undefined

/** Returns what one start loads, for all tests. */
function loadedAtStart(): Promise<Loaded> {
  return (loaded ??= measureStart())
}

async function measureStart(): Promise<Loaded> {
  const cli = startCli({ preload: PRELOAD, unbundled: true })
  await cli.ready()
  cli.child.kill('SIGTERM')
  await cli.exited
  return JSON.parse(cli.stderr) as Loaded
}

/** Libraries that only some settings, or some requests, need. */
const LATER = ['@nats-io/', 'cloudevents/', 'jose/', 'pino-pretty/', 'undici/', 'ws/', 'yaml/']

test('start - with default settings the server loads few files, and no library that only some settings need', async () => {
  const { fetchClient, files } = await loadedAtStart()
  expect(files.filter((url) => LATER.some((name) => url.includes(`/node_modules/${name}`)))).toEqual([])
  expect(fetchClient, 'import node:http with process.getBuiltinModule').toBe(false)
  const own = files.filter((url) => !url.includes('/node_modules/'))
  expect(own.length).toBeGreaterThan(300)
  // 637 of the workspace and 809 of libraries when this was last changed; each costs about 0.5 ms from source.
  expect(own.length).toBeLessThan(650)
  expect(files.length - own.length).toBeLessThan(825)
})

test('start - V8 gets other flags when everything is loaded, so that Node uses the compiled code of its own modules', async () => {
  const { beforeFlag, files } = await loadedAtStart()
  expect(beforeFlag).toBeGreaterThan(1_000)
  expect(files.slice(beforeFlag)).toEqual([])
})
