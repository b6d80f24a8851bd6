import type { ChildProcess } from 'node:child_process'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'signalbox-readme-'))

interface Block {
  readonly language: string
  readonly text: string
}

/** The fenced blocks of one section of the README, in order. */
function blocks(heading: string): readonly Block[] {
  const [, section = ''] = readme.split(`\n## ${heading}\n`)
  const [own = ''] = section.split('\n## ')
  return [...own.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({ language, text }))
}

/** What a block shows, as a pattern: `…` stands for anything. */
function shown(text: string): RegExp {
  const parts = text.trim().split('…')
  return new RegExp(`^${parts.map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)).join('[^]*')}$`)
}

let server: ChildProcess
let addresses: { http: string; api: string }

beforeAll(async () => {
  server = spawn(process.execPath, ['--conditions=@signalbox/source', 'apps/server/src/main.ts'], {
    cwd: root,
    env: { ...process.env, HTTP_PORT: '0', API_PORT: '0', STORE_PATH: join(folder, 'store') },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (!server.stdout) throw new Error('the server has no stdout')
  for await (const line of createInterface({ input: server.stdout })) {
    if (!line.includes('"signalbox ready"')) continue
    addresses = JSON.parse(line) as typeof addresses
    return
  }
  throw new Error('the server ended before it was ready')
})

afterAll(async () => {
  const gone = new Promise((resolve) => server.once('exit', resolve))
  server.kill('SIGTERM')
  await gone
  rmSync(folder, { recursive: true, force: true })
})

function here(text: string): string {
  return text.replaceAll('http://127.0.0.1:9090', addresses.http).replaceAll('http://127.0.0.1:8080', addresses.api)
}

/** Pastes every command, and compares what it prints with the block after it. */
async function answersAsShown(walk: readonly Block[]): Promise<void> {
  for (const [i, command] of walk.entries()) {
    if (command.language !== 'sh') continue
    const { stdout } = await promisify(execFile)('bash', ['-euo', 'pipefail', '-c', here(command.text)])
    expect(stdout.trim(), command.text).toMatch(shown(walk[i + 1]?.text ?? ''))
  }
}

test('README - the tour answers what it shows when pasted', async () => {
  const tour = blocks('A five-minute tour')
  expect(tour.length).toBeGreaterThan(6)
  await answersAsShown(tour)
})

test('README - the walk with an agent answers what it shows when pasted', async () => {
  const [start, registered, ...calls] = blocks('Call an agent')
  const [, program = '', base = ''] = /^npx node (\S+) (\S+)\n$/.exec(here(start?.text ?? '')) ?? []
  const agent = spawn(process.execPath, [program, base], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(agent, 'exit')
  try {
    const [line] = (await once(createInterface({ input: agent.stdout }), 'line')) as [string]
    expect(line).toMatch(shown(registered?.text ?? ''))
    expect(calls).toHaveLength(6)
    await answersAsShown(calls)
  } finally {
    agent.kill('SIGTERM')
  }
  expect(await ended).toEqual([0, null])
  expect(await (await fetch(`${addresses.http}/agents`)).json()).toEqual([])
})

test('README - the client program lists the tools', async () => {
  const program = blocks('Connect a model').find((block) => block.language === 'ts')
  const file = join(root, 'tools', `readme-client-${process.pid}.mts`)
  writeFileSync(file, here(program?.text ?? ''))
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [file])
    expect(stdout).toContain('queue_send queue_receive')
  } finally {
    rmSync(file)
  }
})

test('README - the two commands that do all the set-up are there', () => {
  expect(readme).toContain('npm ci && npm start')
  expect(readme).toContain('npm ci && npm test')
})
