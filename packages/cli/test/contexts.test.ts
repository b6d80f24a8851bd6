import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { command } from '@signalbox/cli/testing'
import { testFolder } from '@signalbox/testkit/test-folder'
import { testServer } from '@signalbox/testkit/test-server'
import { expect, test } from 'vitest'

import { compareVersions, configurationChecks } from '../src/doctor.ts'

/** A command line of a user with a folder of his own. */
function user() {
  const folder = testFolder()
  const file = join(folder, 'signalbox', 'contexts.json')
  const run = (args: string, env: Record<string, string> = {}, stdin = '') =>
    command(args.split(' '), { env: { XDG_CONFIG_HOME: folder, ...env }, stdin })
  return { file, run }
}

test('contexts - are saved for the user alone, listed without tokens, used and removed', async () => {
  const { file, run } = user()
  expect((await run('context ls')).code).toBe(3)
  expect((await run('context add one --url http://127.0.0.1:1/ --token -', {}, 'secret\n')).stdout).toContain(file)
  expect((await run('context add two --url https://b.example.com --api https://b.example.com:8080')).code).toBe(0)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const listed = await run('context ls')
  expect(listed.stdout).toBe(
    '* one  http://127.0.0.1:1                                 token\n  two  https://b.example.com  https://b.example.com:8080\n',
  )
  expect((await run('context ls --json')).stdout).not.toContain('secret')
  expect((await run('context use two')).code).toBe(0)
  expect((await run('context use three')).stderr).toContain('no context "three"; allowed are one, two')
  expect((await run('context rm two')).code).toBe(0)
  expect((await run('context ls')).stdout).toMatch(/^ {2}one/)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
    contexts: { one: { url: 'http://127.0.0.1:1', token: 'secret' } },
  })
  expect((await run('context add x --url ftp://a')).stderr).toContain(
    '--url is "ftp://a"; allowed is an http or https URL',
  )
  writeFileSync(file, '[]')
  expect(await run('context ls')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('is not a file of contexts'),
  })
})

test('contexts - the token of a context is sent only to its server; a file that others can read is reported', async () => {
  const seen: (string | undefined)[] = []
  const listener = await testServer((request, response) => {
    seen.push(request.headers.authorization)
    response.end('{}')
  })
  const url = listener.url
  const { file, run } = user()
  await run(`context add own --url ${url} --token secret`)
  await run('agents ls')
  expect(seen.splice(0)).toContain('Bearer secret')
  await run(`agents ls --url ${url.replace('127.0.0.1', 'localhost')}`)
  expect(seen.splice(0)).not.toContain('Bearer secret')
  await run(`stats --api ${url}`)
  expect(seen.splice(0)).toEqual([undefined])
  await run('agents ls', { SIGNALBOX_TOKEN: 'other' })
  expect(seen.splice(0)).toContain('Bearer other')
  chmodSync(file, 0o644)
  expect((await run('agents ls')).stderr).toContain(`other users can read ${file}; run chmod 600 on it`)
  const tokenFile = join(testFolder(), 'token')
  writeFileSync(tokenFile, 'from-file\n')
  await run(`context add own --url ${url} --token-file ${tokenFile}`)
  await run('agents ls')
  expect(seen).toContain('Bearer from-file')
  expect((await run('agents ls --context nope')).stderr).toContain('--context is "nope"; allowed are own')
})

test('doctor - finds what is unsafe in a configuration, and compares versions', () => {
  const open = {
    http: { host: '0.0.0.0' },
    api: { host: '::' },
    authentication: { enable: false },
    security: { certFile: '' },
  }
  const found = configurationChecks(open).map(({ name, state }) => `${name} ${state}`)
  expect(found).toEqual(['authentication failed', 'management failed', 'encryption warning'])
  const closed = {
    authentication: { enable: true },
    authorization: { enable: false },
    connectors: { a2a: { agentTlsSkipVerify: true } },
  }
  expect(configurationChecks(closed).map(({ name }) => name)).toEqual(['policy', 'agents'])
  expect(compareVersions('0.9.0', '0.10.0')).toBeLessThan(0)
  expect(compareVersions('1.0.0', '1.0.0-rc.1')).toBeGreaterThan(0)
  expect(compareVersions('1.2.3', '1.2.3')).toBe(0)
})
