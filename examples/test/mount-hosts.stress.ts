// Every host of mount-hosts with the built packages, on the runtimes that it is for, which npm installs: two lines of
// Node, and Bun. Node 22 cannot run the sources.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { driveEndpoint, endWhileWaiting, startMountedHost } from './mounted-host.ts'

const NODE = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
const BUN = `@oven/bun-${process.platform}-${process.arch === 'arm64' ? 'aarch64' : process.arch}`

const RUNTIMES = [
  { name: 'Node 22', package: `${NODE}@22`, binary: `${NODE}/bin/node`, hosts: ['express', 'hono'] },
  { name: 'Node 24', package: `${NODE}@24`, binary: `${NODE}/bin/node`, hosts: ['express', 'hono'] },
  { name: 'Bun', package: `${BUN}@1`, binary: `${BUN}/bin/bun`, hosts: ['bun', 'hono', 'express'] },
]

beforeAll(() => promisify(execFile)('npm', ['run', 'build'], { cwd: join(import.meta.dirname, '../..') }), 600_000)

for (const runtime of RUNTIMES) {
  describe(`examples - mount-hosts on ${runtime.name}`, () => {
    let folder: string

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'signalbox-runtime-'))
      await writeFile(join(folder, 'package.json'), '{"private":true}')
      const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
      await promisify(execFile)('npm', ['install', ...options, runtime.package], { cwd: folder })
    }, 120_000)

    afterAll(() => rm(folder, { recursive: true, force: true }))

    test.each(runtime.hosts)('%s serves the official client, and ends when asked to', async (name) => {
      const host = await startMountedHost(name, [join(folder, 'node_modules', runtime.binary)])
      await driveEndpoint(host.url)
      expect(await endWhileWaiting(host)).toBe(0)
    })
  })
}
