import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { runCli, startCli } from './support/cli.ts'
import { rpc } from './support/mcp.ts'
import { file, policyText } from './support/tokens.ts'

function token(folder: string, ...args: readonly string[]) {
  return runCli({ args: ['token', '--folder', folder, ...args] })
}

function claimsOf(text: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>
}

test('command line - token makes keys once, a token alone on stdout, and says how to start the server with it', async () => {
  const folder = join(testFolder(), 'keys')
  const first = await token(folder, '--client-id', 'alice', '--roles', 'ReadOnly,Admin', '--ttl', '2h')
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

test.each([
  [[], 'token: --client-id: it is missing; write --client-id=VALUE'],
  [['--client-id', 'a b'], 'token: --client-id: allowed are 1 to 256 visible ASCII characters'],
  [
    ['--client-id', 'a', '--roles', 'Root'],
    'token: --roles: "Root" is unknown; allowed are ReadOnly, ReadWrite, Admin',
  ],
  [['--client-id', 'a', '--ttl', 'forever'], 'token: --ttl: "forever"; allowed is a time such as 90s, 30m, 12h or 7d'],
  [['--client-id', 'a', '--ttl', '0s'], 'token: --ttl: "0s"; allowed is a time such as 90s, 30m, 12h or 7d'],
  [['--client-id', 'a', 'b'], 'token: "b": not an option'],
  [
    ['--client', 'a', '--client-id', 'a'],
    'token: --client: unknown; allowed are --client-id, --roles, --ttl, --folder',
  ],
])('command line - token %j is refused', async (args, problem) => {
  const folder = join(testFolder(), 'keys')
  const { code, stdout, stderr } = await token(folder, ...args)
  expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: `signalbox: ${problem}\n` })
  expect(() => statSync(folder)).toThrow('ENOENT')
})

test('command line - token says when the folder cannot be written', async () => {
  const path = join(testFolder(), 'file')
  writeFileSync(path, '')
  const { code, stderr } = await token(join(path, 'keys'), '--client-id', 'a')
  expect(code).toBe(1)
  expect(stderr).toMatch(/^signalbox: token: --folder: no key pair can be created or read in .* \(ENOTDIR\)\n$/)
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
  const { code, stdout } = await runCli({ args: ['policy', 'check', file(POLICY), ...args] })
  expect(code).toBe(0)
  expect(stdout).toContain(text)
})

/** What a wrong `policy` command says. */
async function check(...args: readonly string[]): Promise<string> {
  const { code, stderr } = await runCli({ args: ['policy', ...args] })
  expect(code).toBe(2)
  return stderr
}

test('S4 - policy check lists every problem of a call and of a file', async () => {
  const call = ['--client', 'x', '--action', 'send', '--pattern', 'queues', '--channel', 'y']
  expect(await check()).toMatch(/^signalbox: policy: allowed is signalbox policy check FILE --client/)
  expect(await check('check', '/nowhere', ...call)).toBe('signalbox: cannot read "/nowhere" (ENOENT)\n')
  const bad = file('rules: [{ clients: a, effect: no }, 7]')
  expect(await check('check', bad, ...call)).toMatch(
    /^signalbox: .*: rule 0: effect is "no".*\nsignalbox: .*: rule 1: it is 7/,
  )
  const wrong = ['--client', 'x', '--action', 'sned', '--pattern', 'topics', '--channel', 'y']
  expect(await check('check', bad, ...wrong)).toMatch(/--action: sned is unknown.*\n.*--pattern: topics is unknown/)
})

test.each([
  [['token', '--help'], 'token --client-id NAME'],
  [['policy', '-h'], 'policy check FILE --client NAME'],
  [['policy', 'check', '--help'], 'policy check FILE --client NAME'],
  [['backup', '--help'], 'backup FILE [--store-path FOLDER]'],
  [['recover', '--help'], 'recover FOLDER NEW_FOLDER'],
])('command line - %j says how the command is written', async (args, usage) => {
  const { code, stdout, stderr } = await runCli({ args })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain(`Usage: signalbox ${usage}`)
})
