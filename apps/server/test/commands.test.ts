import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

import { testFile, testFolder } from '@signalbox/testkit/test-folder'
import { expect, test } from 'vitest'

import { runCli, startCli } from './support/cli.ts'
import { command } from './support/commands.ts'
import { rpc } from './support/mcp.ts'
import { serve } from './support/server.ts'
import { issuer, policyText, trusting } from './support/tokens.ts'

function token(folder: string, ...args: readonly string[]) {
  return command(['token', '--folder', folder, ...args])
}

function claimsOf(text: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>
}

test('command line - token makes keys once, a token alone on stdout, and says how to start the server with it', async () => {
  const folder = join(testFolder(), 'keys')
  const alice = ['--client-id', 'alice', '--roles', 'ReadOnly,Admin', '--ttl', '2h']
  const first = await runCli({ args: ['token', '--folder', folder, ...alice] })
  expect(first.code).toBe(0)
  expect(first.stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
  expect(claimsOf(first.stdout)).toMatchObject({ ClientID: 'alice', roles: ['ReadOnly', 'Admin'] })
  const { exp, iat } = claimsOf(first.stdout)
  expect(Number(exp) - Number(iat)).toBe(7200)
  expect(statSync(join(folder, 'private.pem')).mode & 0o077).toBe(0)
  const keys = readFileSync(join(folder, 'private.pem'), 'utf8')
  const second = await token(folder, '--client-id=bob')
  expect(readFileSync(join(folder, 'private.pem'), 'utf8')).toBe(keys)
  expect(claimsOf(second.stdout)).not.toHaveProperty('roles')

  // What it prints is a command: here its settings are taken at their word.
  const settings = [...first.stderr.matchAll(/(AUTHENTICATION_[A-Z_]+)=(\S+)/g)].map(([, name = '', value = '']) => [
    name,
    value,
  ])
  const server = startCli({ env: Object.fromEntries(settings) })
  const { http } = await server.ready()
  const ping = (authorization: string) => rpc(http, 'ping', {}, { authorization })
  for (const { stdout } of [first, second]) expect(await ping(`Bearer ${stdout.trim()}`)).toMatchObject({ result: {} })
  expect(await ping('Bearer x')).toMatchObject({ error: { code: -32010 } })
})

const POLICY = policyText(
  { clients: 'billing', actions: 'send', patterns: 'queues', channels: 'orders.*' },
  { channels: 'secret.*', effect: 'deny' },
  { actions: 'subscribe' },
)

test.each([
  ['billing', 'send', 'queues', 'orders.new', 'allowed: billing may send on queues orders.new\nrule 0 decides'],
  ['other', 'send', 'queues', 'orders.new', 'denied: other may not send on queues orders.new\nno rule of 3 allows it'],
  ['other', 'subscribe', 'events', 'secret.a', 'denied: other may not subscribe on events secret.a\nrule 1 decides'],
  ['other', 'subscribe', 'events', 'secret.>', 'denied: other may not subscribe on events secret.>\nrule 1 decides'],
  ['other', 'subscribe', 'events', 'open.>', 'allowed: other may subscribe on events open.>\nrule 2 decides'],
])('S4 - policy check explains: %s, %s on %s %s', async (client, action, pattern, channel, text) => {
  const args = ['--client', client, '--action', action, '--pattern', pattern, '--channel', channel]
  const { code, stdout } = await command(['policy', 'check', testFile(POLICY), ...args])
  expect(code).toBe(0)
  expect(stdout).toContain(text)
})

/** What a wrong `policy` command says. */
async function check(...args: readonly string[]): Promise<string> {
  const { code, stderr } = await command(['policy', ...args])
  expect(code).toBe(2)
  return stderr
}

test('S4 - policy check lists every problem of a call and of a file', async () => {
  const call = ['--client', 'x', '--action', 'send', '--pattern', 'queues', '--channel', 'y']
  expect(await check()).toMatch(/^signalbox: policy: allowed is signalbox policy check FILE --client/)
  expect(await check('check', '/nowhere', ...call)).toBe('signalbox: cannot read "/nowhere" (ENOENT)\n')
  const bad = testFile('rules: [{ clients: a, effect: no }, 7]')
  expect(await check('check', bad, ...call)).toMatch(
    /^signalbox: .*: rule 0: effect is "no".*\nsignalbox: .*: rule 1: it is 7/,
  )
  const wrong = ['--client', 'x', '--action', 'sned', '--pattern', 'topics', '--channel', 'y']
  expect(await check('check', bad, ...wrong)).toMatch(/--action: sned is unknown.*\n.*--pattern: topics is unknown/)
})

test('S1 - token --jwks prints the public key as a key set that verifies the tokens of the folder', async () => {
  const folder = join(testFolder(), 'keys')
  const jwks = await command(['token', '--jwks', '--folder', folder])
  expect(jwks.code).toBe(0)
  const { keys } = JSON.parse(jwks.stdout) as { keys: Record<string, string>[] }
  expect(keys).toMatchObject([{ kty: 'EC', alg: 'ES256', use: 'sig', kid: expect.stringMatching(/^[\w-]{43}$/) }])
  expect(keys[0]).not.toHaveProperty('d')
  const { token: text } = JSON.parse(
    (await command(['token', '--client-id', 'a', '--folder', folder, '--json'])).stdout,
  )
  const { http } = await serve({ authentication: { enable: true, jwksFile: testFile(jwks.stdout) } })
  expect(await rpc(http.url, 'ping', {}, { authorization: `Bearer ${text}` })).toMatchObject({ result: {} })
})

test('S4 - policy test compares the decisions of a policy with the expected ones', async () => {
  const policy = testFile(POLICY)
  const tests = (expect: string) =>
    testFile(
      JSON.stringify({
        policy,
        tests: [
          { client: 'billing', action: 'send', pattern: 'queues', channel: 'orders.new', expect },
          { client: 'other', action: 'send', pattern: 'queues', channel: 'orders.new', expect: 'deny' },
        ],
      }),
    )
  expect(await command(['policy', 'test', tests('allow')])).toEqual({
    code: 0,
    stdout: '2 of 2 tests passed\n',
    stderr: '',
  })
  const failed = await command(['policy', 'test', tests('deny')])
  expect(failed).toMatchObject({ code: 1, stderr: '' })
  expect(failed.stdout).toBe(
    'failed: billing send queues orders.new: expected deny, got allow: rule 0 decides (the first is rule 0)\n1 of 2 tests passed\n',
  )
  const json = await command(['policy', 'test', tests('deny'), '--json'])
  expect(
    json.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { client: 'billing', allowed: true, rule: 0, expect: 'deny', passed: false },
    { client: 'other', allowed: false, rule: null, passed: true },
  ])
  const bad = await command(['policy', 'test', testFile('tests: [{ client: a, action: sned }, 7]')])
  expect(bad.code).toBe(2)
  expect(bad.stderr).toMatch(
    /: policy is missing.*\n.*test 0: action is "sned"; allowed are.*\n.*test 1: it is not an object/,
  )
})

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

test('doctor - reports a server that is unreachable, is not Signalbox, or has problems', async () => {
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
