import { expect, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { command } from './support/commands.ts'
import { serve } from './support/server.ts'
import { issuer, trusting } from './support/tokens.ts'

/** Runs the command line of a user without contexts. */
function user() {
  const env = { XDG_CONFIG_HOME: testFolder() }
  return {
    run: (args: string, more: Record<string, string> = {}) => command(args.split(' '), { env: { ...env, ...more } }),
  }
}

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
