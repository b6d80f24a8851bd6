import { execFile } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { blocks, PageServer, ROOT, shown } from '../testing/shown-session.ts'

let server: PageServer

beforeAll(async () => {
  server = await PageServer.start()
})

afterAll(() => server[Symbol.asyncDispose]())

test('README - the tour answers what it shows when pasted', async () => {
  const tour = blocks('README.md', 'A five-minute tour')
  expect(tour.length).toBeGreaterThan(6)
  for (const [i, command] of tour.entries()) {
    if (command.language !== 'sh') continue
    expect(await server.run(command), command.text).toMatch(shown(tour[i + 1]?.text ?? ''))
  }
})

test('README - the client program lists the tools', async () => {
  const program = blocks('README.md', 'Connect a model').find((block) => block.language === 'ts')
  const file = join(ROOT, 'tools', `readme-client-${process.pid}.mts`)
  writeFileSync(file, server.here(program?.text ?? ''))
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [file])
    expect(stdout).toContain('queue_send queue_receive')
  } finally {
    rmSync(file)
  }
})

test('README - the two commands that do all the set-up are there', () => {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
  expect(readme).toContain('npm ci && npm start')
  expect(readme).toContain('npm ci && npm test')
})
