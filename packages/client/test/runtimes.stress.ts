// The built client on the runtimes that it is for, which npm installs: the oldest line of Node, Bun and Deno.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { PROGRAM, RESULT } from './every-runtime.ts'
import { TestServer } from './server.ts'

const run = promisify(execFile)

const ROOT = join(import.meta.dirname, '../../..')
const { platform, arch } = process
const NODE = `node-${platform === 'win32' ? 'win' : platform}-${arch}`
const BUN = `@oven/bun-${platform}-${arch === 'arm64' ? 'aarch64' : arch}`
const DENO = `@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}`

const RUNTIMES = [
  { name: 'Node 20', package: `${NODE}@20`, binary: `${NODE}/bin/node`, args: [] },
  { name: 'Bun', package: `${BUN}@1`, binary: `${BUN}/bin/bun`, args: [] },
  {
    name: 'Deno',
    package: `${DENO}@2`,
    binary: `${DENO}/deno`,
    args: ['run', '--no-prompt', '--allow-net', '--allow-read'],
  },
]

let folder: string
let tarball: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox-client-'))
  await run('npx', ['nx', 'run', '@signalbox/client:build'], { cwd: ROOT })
  const packed = await run('npm', ['pack', '--silent', '--pack-destination', folder], {
    cwd: join(import.meta.dirname, '..'),
  })
  tarball = join(folder, packed.stdout.trim())
}, 300_000)

afterAll(() => rm(folder, { recursive: true, force: true }))

for (const runtime of RUNTIMES) {
  describe(`runtimes - the client on ${runtime.name}`, () => {
    let own: string

    beforeAll(async () => {
      own = join(folder, runtime.name.replace(' ', '-'))
      const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', '--prefix', own]
      await run('npm', ['install', ...options, tarball, runtime.package])
    }, 120_000)

    test('works on a queue, reads events, answers and asks, and ends', async () => {
      await using server = await TestServer.start()
      const program = join(own, 'program.mjs')
      await writeFile(
        program,
        `import { connect } from '@signalbox/client'
console.log(JSON.stringify(await (${PROGRAM})(connect, ${JSON.stringify(server.url)})))
`,
      )
      const { stdout, stderr } = await run(join(own, 'node_modules', runtime.binary), [...runtime.args, program], {
        cwd: own,
        timeout: 60_000,
      })
      expect(stderr).toContain('the first receive fails')
      expect(JSON.parse(stdout)).toEqual(RESULT)
    })
  })
}
