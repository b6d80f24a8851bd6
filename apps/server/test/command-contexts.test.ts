import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { compareVersions, configurationChecks } from '../src/commands/doctor-rules.ts'
import { VERSION } from '../src/version.ts'
import { command } from './support/commands.ts'
import { serve } from './support/server.ts'
import { issuer, trusting } from './support/tokens.ts'

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

test('contexts - the token of a context goes to its server only, and warns of a file that others can read', async () => {
  const seen: (string | undefined)[] = []
  const listener = createServer((request, response) => {
    seen.push(request.headers.authorization)
    response.end('{}')
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void listener.close())
  await new Promise((resolve) => listener.once('listening', resolve))
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`
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

test('commands - a missing or wrong token is exit code 4, on both listeners', async () => {
  const keys = issuer()
  const server = await serve(trusting(keys))
  const env = { SIGNALBOX_URL: server.http.url, SIGNALBOX_API_URL: server.api.url }
  const { run } = user()
  for (const args of ['send q x', 'receive q', 'sub e', 'log read s', 'agents ls', 'stats', 'monitor', 'ask c']) {
    expect([args, (await run(args, env)).code]).toEqual([args, 4])
  }
  const SIGNALBOX_TOKEN = (await keys.bearer('alice', { roles: ['ReadOnly'] })).replace('Bearer ', '')
  expect((await run('send q x', { ...env, SIGNALBOX_TOKEN })).code).toBe(0)
  expect((await run('stats', { ...env, SIGNALBOX_TOKEN })).code).toBe(0)
  expect((await run('redrive q', { ...env, SIGNALBOX_TOKEN })).code).toBe(4)
  const doctor = await run('doctor', { ...env, SIGNALBOX_TOKEN })
  expect(doctor.stdout).toMatch(/ok +authentication +calls without a token are refused\nok +token +accepted/)
  expect(await run('doctor', { ...env, SIGNALBOX_TOKEN: 'wrong' })).toMatchObject({
    code: 4,
    stdout: expect.stringMatching(/failed +token +refused/),
  })
})

test('doctor - reports a server that is not reachable, is none, or has problems', async () => {
  const { run } = user()
  const nowhere = await run('doctor --url http://127.0.0.1:9')
  expect(nowhere).toMatchObject({
    code: 5,
    stdout: expect.stringMatching(/^failed +reachable +http.* cannot be reached/),
  })
  const { api, http } = await serve()
  // The probes are on both listeners; calls are not.
  const fine = await run(`doctor --url ${http.url} --api ${api.url} --json`)
  expect(fine.code).toBe(0)
  const checks = fine.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { check: string; state: string })
  expect(checks.map(({ check, state }) => `${check} ${state}`)).toEqual([
    'reachable ok',
    'healthy ok',
    'current ok',
    'authentication ok',
    'encryption ok',
    'management ok',
    'queues warning',
    'stores warning',
  ])
  expect((await run(`doctor --url ${http.url}`)).stdout).toMatch(/warning +management +not checked: give --api/)
  expect((await run(`stats --url ${http.url}`)).stderr).toContain('stats: --api is missing; write --api=URL')
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
  expect(compareVersions(VERSION, VERSION)).toBe(0)
})
