import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { expect, onTestFinished, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { connect } from '@signalbox/client'
import type { CliOptions } from './support/cli.ts'
import { Cli, runCli } from './support/cli.ts'
import { serveAll } from './support/server.ts'

const server = serveAll()

function options(args: string, more: Partial<CliOptions> = {}): CliOptions {
  const env = { SIGNALBOX_URL: server().http.url, SIGNALBOX_API_URL: server().api.url, XDG_CONFIG_HOME: testFolder() }
  return { args: args.split(' '), ...more, env: { ...env, ...more.env } }
}

test('command process - stdin is the body, bodies are stdout, the rest is stderr, codes are exit codes', async () => {
  expect(await runCli(options('send piped -', { stdin: 'from a pipe' }))).toMatchObject({ code: 0, stderr: '' })
  expect(await runCli(options('receive piped'))).toEqual({ code: 0, stdout: 'from a pipe\n', stderr: '' })
  expect(await runCli(options('receive piped --wait 0s'))).toEqual({ code: 3, stdout: '', stderr: '' })
  expect((await runCli(options('receive'))).code).toBe(2)
  const away = await runCli(options('receive piped', { env: { SIGNALBOX_URL: 'http://127.0.0.1:9' } }))
  expect(away).toMatchObject({ code: 5, stdout: '' })
  expect(away.stderr.split('\n')).toHaveLength(2)
})

test.each(['sub orders.*', 'monitor', 'log read sales --follow'])(
  'command process - Ctrl-C ends %s with 0',
  async (args) => {
    const cli = new Cli(options(args))
    await cli.until(() => cli.stderr.includes('Ctrl-C ends'), 'it waits')
    cli.child.kill('SIGINT')
    expect(await cli.exited).toEqual({ code: 0, signal: null })
    expect(cli.stderr.split('\n')).toHaveLength(2)
  },
)

test('command process - Ctrl-C ends a receive that waits with 130, SIGTERM with 143', async () => {
  const silent = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void silent.close())
  await once(silent, 'listening')
  const env = { SIGNALBOX_URL: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` }
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const cli = new Cli(options('receive waiting --wait 60s', { env }))
    await once(silent, 'request')
    cli.child.kill(signal)
    expect(await cli.exited).toEqual({ code, signal: null })
    expect(cli.stderr).toBe('')
  }
})

test('command process - a reader that closes the pipe ends the command silently, and unread messages stay in the queue', async () => {
  const sb = connect(server().http.url)
  for (let n = 0; n < 300; n++) await sb.queue('long').send('x'.repeat(1000))
  const cli = new Cli(options('drain long'))
  await cli.until(() => cli.stdout.length > 0, 'the first message')
  cli.child.stdout?.destroy()
  expect(await cli.exited).toEqual({ code: 0, signal: null })
  expect(cli.stderr).toBe('')
  expect((await sb.queue('long').peek({ max: 1000 })).length).toBeGreaterThan(0)
  await sb.close()
})

test('command process - commands load no code of the server', async () => {
  const preload = `
import { registerHooks } from 'node:module'
const files = []
registerHooks({ load: (url, context, next) => (files.push(url), next(url, context)) })
process.once('exit', () => process._rawDebug('FILES' + JSON.stringify(files.filter((url) => url.startsWith('file:')))))
`
  const { stderr } = await runCli(options('send loaded x', { preload, unbundled: true }))
  const files = JSON.parse(stderr.slice(stderr.indexOf('FILES') + 5)) as string[]
  const own = files
    .filter((url) => !url.includes('/node_modules/'))
    .map((url) => url.replace(/^.*\/(apps|packages)\//, '$1/'))
  const others = own.filter(
    (file) =>
      !/^(apps\/server\/(scripts\/start\.js|src\/(main|cli|version|lifecycle\/compile-cache)\.ts)|packages\/(cli|client|broker-core)\/src)/.test(
        file,
      ),
  )
  expect(others).toEqual([])
  expect(files.length - own.length).toBeLessThan(5)
})
