import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join, relative } from 'node:path'
import { TLSSocket } from 'node:tls'

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { testFile, testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import type { RunningServer } from '../src/server.ts'
import { APP, runCli } from './support/cli.ts'
import type { CommandResult } from './support/commands.ts'
import { command, RunningCommand } from './support/commands.ts'
import { serve } from './support/server.ts'
import { certificate, pem } from './support/tls.ts'

const CA = certificate('authority.crt')
const FILES = { ca: CA, cert: certificate('client.crt'), key: certificate('client.key') }
const OPTIONS = ['--ca-file', FILES.ca, '--cert-file', FILES.cert, '--key-file', FILES.key]
const VARIABLES = { SIGNALBOX_CA_FILE: FILES.ca, SIGNALBOX_CERT_FILE: FILES.cert, SIGNALBOX_KEY_FILE: FILES.key }

/** A server whose listeners both require client certificates. */
function strictServer(): Promise<RunningServer> {
  const security = { certFile: certificate('server.crt'), keyFile: certificate('server.key'), caFile: CA }
  return serve({ security, api: { security } })
}

function urlsOf({ http, api }: RunningServer): Record<string, string> {
  return { SIGNALBOX_URL: http.url, SIGNALBOX_API_URL: api.url }
}

test('client certificates - every kind of command reaches a server that requires them', async () => {
  const env = urlsOf(await strictServer())
  const run = (...args: string[]): Promise<CommandResult> => command([...args, ...OPTIONS], { env })
  expect(await run('send', 'jobs', 'one')).toMatchObject({ code: 0, stderr: '' })
  expect(await run('receive', 'jobs')).toMatchObject({ code: 0, stdout: 'one\n' })
  expect(await run('log', 'append', 'sales', 'two')).toMatchObject({ code: 0 })
  expect(await run('log', 'read', 'sales')).toMatchObject({ code: 0, stdout: '1\ttwo\n' })
  expect(await run('agents', 'ls')).toMatchObject({ code: 3, stderr: '' })
  await expect.poll(() => run('stats', 'queues')).toMatchObject({ code: 0, stdout: expect.stringContaining('jobs') })
  const doctor = await run('doctor')
  expect(doctor.stdout).toMatch(/ok +encryption +https/)
  expect(doctor.stdout).toMatch(/ok +management +https/)
  expect(doctor.code).toBe(0)
})

test('client certificates - streams of both listeners work', async () => {
  const env = urlsOf(await strictServer())
  const sub = new RunningCommand(['sub', 'orders.*', '--max', '1', ...OPTIONS], { env })
  const monitor = new RunningCommand(['monitor', '--max', '1', ...OPTIONS], { env })
  await Promise.all([sub.until('waiting for messages'), monitor.until('waiting for messages')])
  expect((await command(['pub', 'orders.eu', 'hello', ...OPTIONS], { env })).code).toBe(0)
  expect(await sub.result).toMatchObject({ code: 0, stdout: 'orders.eu\thello\n' })
  expect(await monitor.result).toMatchObject({ code: 0, stdout: expect.stringContaining('orders.eu') })
})

test('client certificates - Ctrl-C ends a call that waits, also at the server', async () => {
  const server = await strictServer()
  const asked = Promise.withResolvers<AbortSignal>()
  await server.broker.as({ clientId: 'responder' }).queries.subscribe('prices', {}, ({ signal }) => {
    asked.resolve(signal)
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve({ body: new Uint8Array() })))
  })
  const ask = new RunningCommand(['ask', 'prices', ...OPTIONS], { env: urlsOf(server) })
  const signal = await asked.promise
  ask.interrupt()
  expect((await ask.result).code).toBe(130)
  await expect.poll(() => signal.aborted).toBe(true)
})

test('client certificates - the environment and contexts name the files, options take precedence', async () => {
  const server = await strictServer()
  const folder = testFolder()
  const run = (args: readonly string[], env: Record<string, string> = {}): Promise<CommandResult> =>
    command(args, { env: { XDG_CONFIG_HOME: folder, ...env } })
  expect((await run(['send', 'q', 'x'], { ...urlsOf(server), ...VARIABLES })).code).toBe(0)
  const { url } = server.http
  const given = OPTIONS.map((word) => (word.startsWith('--') ? word : relative(process.cwd(), word)))
  expect((await run(['context', 'add', 'strict', '--url', url, '--api', server.api.url, ...given])).code).toBe(0)
  expect(JSON.parse(readFileSync(join(folder, 'signalbox', 'contexts.json'), 'utf8'))).toMatchObject({
    contexts: { strict: { url, ca_file: FILES.ca, cert_file: FILES.cert, key_file: FILES.key } },
  })
  expect((await run(['receive', 'q'])).stdout).toBe('x\n')
  expect((await run(['stats'])).code).toBe(0)
  const other = await run(['peek', 'q', '--ca-file', certificate('other-authority.crt')], VARIABLES)
  expect(other).toMatchObject({ code: 5, stderr: expect.stringContaining('--ca-file') })
})

test('client certificates - the certificate of a context is sent only to its server', async () => {
  const seen: unknown[] = []
  const { cert, key } = { cert: pem('server.crt'), key: pem('server.key') }
  const other = createServer({ cert, key, ca: pem('authority.crt'), requestCert: true, rejectUnauthorized: false })
  other.on('request', ({ socket }, response) => {
    seen.push(socket instanceof TLSSocket ? socket.getPeerCertificate().subject?.CN : 'plain')
    response.end('{}')
  })
  other.listen(0, '127.0.0.1')
  await new Promise((resolve) => other.once('listening', resolve))
  onTestFinished(() => {
    other.closeAllConnections()
    other.close()
  })
  const { port } = other.address() as AddressInfo
  const env = { XDG_CONFIG_HOME: testFolder() }
  await command(['context', 'add', 'own', '--url', `https://127.0.0.1:${port}`, ...OPTIONS], { env })
  await command(['agents', 'ls'], { env })
  expect(seen.splice(0)).toContain('crm-gateway')
  await command(['agents', 'ls', '--url', `https://localhost:${port}`, '--ca-file', CA], { env })
  expect(new Set(seen)).toEqual(new Set([undefined]))
})

test('client certificates - a refused handshake is exit code 5 and names the option to give', async () => {
  const server = await strictServer()
  const env = urlsOf(server)
  for (const args of [['peek', 'q'], ['stats'], ['monitor'], ['sub', 'e']]) {
    const untrusted = await command(args, { env })
    expect([args, untrusted.code, untrusted.stderr]).toEqual([args, 5, expect.stringContaining('--ca-file')])
  }
  expect(await command(['doctor'], { env })).toMatchObject({ code: 5, stdout: expect.stringContaining('--ca-file') })
  const stranger = ['--cert-file', certificate('stranger.crt'), '--key-file', certificate('stranger.key')]
  for (const more of [[], stranger]) {
    for (const args of [['peek', 'q'], ['stats']]) {
      const refused = await command([...args, '--ca-file', CA, ...more], { env })
      expect([args, refused.code, refused.stderr]).toEqual([args, 5, expect.stringContaining('--cert-file')])
    }
  }
})

test('client certificates - files that cannot be used are exit code 2 and name the option', async () => {
  const wrong: readonly (readonly [readonly string[], string])[] = [
    [['--cert-file', FILES.cert], 'peek: --key-file is missing; allowed: a certificate and its key, or neither'],
    [['--key-file', FILES.key], 'peek: --cert-file is missing'],
    [['--ca-file', '/nowhere'], 'peek: --ca-file is "/nowhere", which cannot be read (ENOENT)'],
    [['--ca-file', FILES.key], 'peek: --ca-file: it contains no certificate in PEM'],
    [['--cert-file', FILES.cert, '--key-file', certificate('stranger.key')], 'peek: --key-file: it does not contain'],
    [['--cert-file', FILES.cert, '--key-file', testFile('x')], 'peek: --key-file: it does not contain the private key'],
  ]
  for (const [options, problem] of wrong) {
    const { code, stderr } = await command(['peek', 'q', '--url', 'https://127.0.0.1:9', ...options])
    expect([options, code, stderr]).toEqual([options, 2, expect.stringContaining(problem)])
  }
})

test('client certificates - plain HTTP is called as without the files', async () => {
  const env = { ...urlsOf(await serve()), ...VARIABLES }
  expect((await command(['send', 'q', 'x'], { env })).code).toBe(0)
  expect((await command(['stats'], { env })).code).toBe(0)
})

test.each([
  ['options', OPTIONS, {}],
  ['the environment', [], VARIABLES],
])('M26 - the bridge for MCP reaches a server that requires client certificates, by %s', async (_from, args, env) => {
  const { http } = await strictServer()
  const client = new Client({ name: 'test', version: '1.0.0' })
  onTestFinished(() => client.close())
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: ['--conditions=@signalbox/source', join(APP, 'scripts/start.js'), 'mcp', '--url', http.url, ...args],
      env: { PATH: process.env['PATH'] ?? '', ...env },
      stderr: 'ignore',
    }),
  )
  const sent = await client.callTool({ name: 'queue_send', arguments: { channel: 'q', body: 'hello' } })
  expect(sent).toMatchObject({ isError: false })
})

test('M26 - the bridge for MCP says which certificate is missing', async () => {
  const { http } = await strictServer()
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
  const untrusted = await runCli({ args: ['mcp', '--url', http.url], stdin: ping })
  expect(untrusted.stderr).toContain('cannot reach')
  expect(untrusted.stderr).toContain('--ca-file')
  const wrong = await runCli({ args: ['mcp', '--url', http.url, '--cert-file', FILES.cert], stdin: '' })
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('mcp: --key-file is missing') })
})
