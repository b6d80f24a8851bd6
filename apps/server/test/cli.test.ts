// cspell:ignore agnts HTPP SHUTDWN stroe
import { readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { fromFlags } from '../src/config/flags.ts'
import { loadConfig } from '../src/config/load.ts'
import { APP, Cli, runCli } from './support/cli.ts'
import { command } from './support/commands.ts'
import { callTool } from './support/mcp.ts'

const { version } = JSON.parse(readFileSync(join(APP, 'package.json'), 'utf8')) as { version: string }

test.each(['--version', '-v', 'version'])('command line - %s prints the version alone', async (flag) => {
  expect(await runCli({ args: [flag] })).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' })
})

test.each(['--help', '-h', 'help'])('command line - %s prints every flag, in any environment', async (flag) => {
  const { code, stdout, stderr } = await runCli({ args: [flag], env: { HTTP_PORT: 'nonsense' } })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('Usage: signalbox [flags]')
  expect(stdout).toContain('--connectors-mcp-trusted-origins VALUE')
})

test('command line - --print-config prints the effective settings and where each came from', async () => {
  const file = join(testFolder(), 'signalbox.yaml')
  writeFileSync(file, 'http: { port: 1001 }\nlog: { level: warn }\n')
  const { code, stdout } = await runCli({
    args: ['--print-config', '-c', file, '--api-port', '1003'],
    env: { LOG_LEVEL: 'error' },
  })
  expect(code).toBe(0)
  expect(stdout).toContain(`port: 1001 # file ${file}\n`)
  expect(stdout).toContain('port: 1003 # flag --api-port\n')
  expect(stdout).toContain('level: error # environment LOG_LEVEL\n')
  expect(stdout).toContain('path: ./data # default\n')
})

test('command line - options of the connection may come before the verb', async () => {
  const args = ['--url', 'http://127.0.0.1:2', '--json', 'agents', 'ls']
  const { code, stderr } = await runCli({ args })
  expect(code).toBe(5)
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'UNREACHABLE' } })
  const help = await command(['help', 'agents', 'ls'])
  expect(help).toEqual(await command(['agents', 'ls', '--help']))
  expect(help.stdout).toContain('Usage: signalbox agents ls')
  expect(await runCli({ args: ['--url=http://127.0.0.1:2', 'agnts'] })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('did you mean agents?'),
  })
})

test.each([
  [{ npm_lifecycle_event: 'start' }, 'npm start'],
  [{ npm_command: 'exec' }, 'npx signalbox'],
  [{}, 'signalbox'],
])('command line - token names the command in use: %o', async (env, advised) => {
  const args = ['token', '--client-id=alice', '--folder', testFolder()]
  const { code, stderr } = await command(args, { env })
  expect(code).toBe(0)
  expect(stderr).toMatch(new RegExp(`AUTHENTICATION_KEY_FILE=\\S+ ${advised}\n`))
})

/** Variables that look like a setting: the beginning of the line about each. */
const MISSPELT = {
  HTTP_PRT: 'HTTP_PRT: no setting has this name, so it has no effect; did you mean HTTP_PORT?',
  HTPP_PORT: 'HTPP_PORT: no setting has this name, so it has no effect; did you mean HTTP_PORT?',
  LOGLEVEL: 'LOGLEVEL: no setting has this name, so it has no effect; did you mean LOG_LEVEL?',
  SHUTDWN_SECOND: 'SHUTDWN_SECOND: no setting has this name, so it has no effect; did you mean SHUTDOWN_SECONDS?',
  SIGNALBOX_API_PORT: 'SIGNALBOX_API_PORT: no setting has this name, so it has no effect; did you mean API_PORT?',
  WEBHOOKS_SECRET: 'WEBHOOKS_SECRET: no setting has this name, so it has no effect',
  http_port: 'http_port: no setting has this name, so it has no effect; did you mean HTTP_PORT?',
}

/** Variables that other programs, Kubernetes and Docker set. */
const OTHERS = {
  HTTP_PROXY: 'http://proxy:3128',
  HTTPS_PORT: '443',
  APP_PORT: '3000',
  APP_HOST: 'x',
  API_KEY: 'x',
  LOG_FILE: '/x',
  HTTPD_PORT: 'tcp://10.0.0.1:80',
  APIS_PORT: 'tcp://10.0.0.1:80',
  HTTP_SERVICE_PORT: '80',
  HTTP_SERVICE_HOST: '10.0.0.1',
  API_PORT_80_TCP: 'tcp://10.0.0.1:80',
  SIGNALBOX_URL: 'http://127.0.0.1:9090',
  SIGNALBOX_PORT: 'tcp://10.0.0.1:9090',
  SIGNALBOX_TOKEN: 'x',
}

test('command line - a variable that looks like a setting is named with the nearest setting, others are not', async () => {
  const values = Object.fromEntries(Object.keys(MISSPELT).map((name) => [name, 'hunter2']))
  const { notices } = await loadConfig({ flags: fromFlags([]), env: { ...values, ...OTHERS } })
  expect(notices).toEqual(
    Object.keys(MISSPELT)
      .sort()
      .map((name) => MISSPELT[name as keyof typeof MISSPELT]),
  )
})

test('command line - the log of the start names a misspelt variable, and not its value', async () => {
  const server = new Cli({ env: { HTTP_PRT: 'hunter2', HTTP_PORT: '0', API_PORT: '0', STORE_PATH: testFolder() } })
  await server.until(() => server.stdout.includes('signalbox ready'), 'it is ready')
  const { stdout } = server
  expect(stdout).toContain('"msg":"HTTP_PRT: no setting has this name, so it has no effect; did you mean HTTP_PORT?"')
  expect(stdout).not.toContain('hunter2')
})

test('S1 - --print-config and complaints do not show the secret that tokens are signed with', async () => {
  const secret = 'a secret of more than thirty-two bytes'
  const { code, stdout } = await runCli({ args: ['--print-config'], env: { AUTHENTICATION_SECRET: secret } })
  expect(code).toBe(0)
  expect(stdout).toContain('secret: "[hidden]" # environment AUTHENTICATION_SECRET\n')
  expect(stdout).not.toContain(secret)
  const file = join(testFolder(), 'signalbox.yaml')
  writeFileSync(file, 'authentication: { secret: [hunter2, hunter3] }\n')
  await expect(loadConfig({ flags: fromFlags(['--config', file]), env: {} })).rejects.toMatchObject({
    problems: [
      expect.stringMatching(/^authentication\.secret: \[hidden\] \(file .*\) is not allowed; allowed: a text/),
    ],
  })
})

test('command line - bad settings: exit code 2, a line for each on stderr, nothing else', async () => {
  const { code, stdout, stderr } = await runCli({ args: ['--http-port=x', '--nope'], env: { STORE_PTH: 'secret' } })
  expect(code).toBe(2)
  expect(stdout).toBe('')
  const lines = stderr.trimEnd().split('\n')
  expect(lines).toHaveLength(3)
  for (const line of lines) expect(line).toMatch(/^signalbox: .*allowed/)
  expect(stderr).not.toContain('secret')
})

test('command line - on a terminal three lines for people follow the ready line', async () => {
  const env = { HTTP_PORT: '0', API_PORT: '0', STORE_PATH: testFolder(), LOG_LEVEL: 'silent' }
  const preload = `Object.defineProperty(process.stdout, 'isTTY', { value: true })`
  const person = new Cli({ env, preload })
  const { http, api } = await person.ready()
  await person.until(() => person.stdout.includes('docs\n'), 'the last line')
  expect(person.stdout.split('\n').slice(1)).toEqual([
    `tools for models   ${http}/mcp`,
    `console            ${api}/console/`,
    'documentation      https://github.com/signalbox/signalbox/tree/main/docs',
    '',
  ])
})

test('command line - an outdated Node is reported in one line', async () => {
  const preload = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '22.18.0' } })`
  const { code, stdout, stderr } = await runCli({ preload })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toBe('signalbox: Node 22.19 or newer is needed; this is 22.18.0\n')
})

test('command line - the entry loads nothing but node itself before it knows the version', () => {
  const source = stripTypeScriptTypes(readFileSync(join(APP, 'src', 'main.ts'), 'utf8'))
  expect(source.startsWith('#!/usr/bin/env node\n')).toBe(true)
  const imports = [...source.matchAll(/^\s*import .* from '(.*)'/gm)].map(([, from]) => from)
  expect(imports).toEqual(['node:module', 'node:process'])
})

test('command line - an uncaught error ends the process with one last line that reports it', async () => {
  const cli = new Cli({
    env: { HTTP_PORT: '0', API_PORT: '0', STORE_PATH: testFolder(), LOG_LEVEL: 'silent', LOG_FORMAT: 'pretty' },
    preload: `process.once('SIGUSR2', () => { throw new Error('the sky is falling') })`,
  })
  await cli.ready()
  cli.child.kill('SIGUSR2')
  expect(await cli.exited).toEqual({ code: 1, signal: null })
  const last = cli.lines().at(-1)
  expect(last).toMatchObject({ level: 'fatal', msg: 'signalbox crashed: the sky is falling' })
  expect(cli.stderr).toBe('')
})

test('command line - an unhandled rejection is logged with its stack and counted, and the server continues', async () => {
  const cli = new Cli({
    env: { HTTP_PORT: '0', API_PORT: '0', STORE_PATH: testFolder() },
    preload: `process.on('SIGUSR2', () => { void Promise.reject(new Error('forgotten')) })`,
  })
  const { http, api } = await cli.ready()
  const metric = /^broker_unhandled_rejections_total (\d+)$/m
  expect(metric.exec(await (await fetch(`${api}/metrics`)).text())?.[1]).toBe('0')
  cli.child.kill('SIGUSR2')
  const rejection = () => cli.lines().find(({ level }) => level === 'error')
  await cli.until(() => rejection() !== undefined, 'the rejection')
  const line = rejection()
  expect(line).toMatchObject({ msg: 'unhandled rejection', err: { stack: expect.stringMatching(/forgotten\n +at /) } })
  expect(metric.exec(await (await fetch(`${api}/metrics`)).text())?.[1]).toBe('1')
  expect(await callTool(http, 'queue_send', { channel: 'q', body: 'x' })).toMatchObject({ isError: false })
  cli.child.kill('SIGTERM')
  expect(await cli.exited).toEqual({ code: 0, signal: null })
})
