import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import type { PartialConfig } from '../src/config/load.ts'
import { createConfig } from '../src/config/load.ts'
import type { ServerError } from '../src/errors.ts'
import { startServer } from '../src/server.ts'
import { startCli } from './support/cli.ts'
import { callTool } from './support/mcp.ts'
import { serve } from './support/server.ts'

/** A port that somebody else listens on. */
async function takenPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** The most connections that this system lets wait for a server. */
function mostPending(): number {
  const setting = '/proc/sys/net/core/somaxconn'
  return existsSync(setting) ? Number(readFileSync(setting, 'utf8')) : 0
}

/** Starts a server that must not start, and returns its one problem. */
async function refusalOf(partial: PartialConfig): Promise<string> {
  const config = createConfig({ ...partial, http: { port: 0, ...partial.http }, api: { port: 0, ...partial.api } })
  const started = startServer(config, { log: pino({ level: 'silent' }) })
  const error = await started.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toMatchObject({ code: 'START_FAILED', problems: [expect.any(String)] })
  return (error as ServerError).problems[0]!
}

/** What lies in a folder, by name. */
function fingerprint(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder).map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
  )
}

test('start - one JSON line on stdout reports the addresses, with any log settings', async () => {
  const cli = startCli({ env: { LOG_LEVEL: 'silent', LOG_FORMAT: 'pretty' } })
  const { http, api } = await cli.ready()
  expect(http).toMatch(/^http:\/\/127\.0\.0\.1:[0-9]+$/)
  expect(api).toMatch(/^http:\/\/127\.0\.0\.1:[0-9]+$/)
  expect(cli.stdout.trimEnd().split('\n')).toHaveLength(1)
  expect(cli.stderr).toBe('')
  expect((await fetch(`${http}/ready`)).status).toBe(200)
  expect((await fetch(`${api}/ready`)).status).toBe(200)
})

test.skipIf(mostPending() < 1_000)('start - a thousand clients can connect while the server is busy', async () => {
  const cli = startCli()
  const { http } = await cli.ready()
  cli.child.kill('SIGSTOP')
  const { hostname, port } = new URL(http)
  const sockets = Array.from({ length: 1_000 }, () => connect(Number(port), hostname))
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  cli.child.kill('SIGCONT')
  expect((await fetch(`${http}/mcp`, { method: 'PUT' })).status).toBe(405)
})

test('start - LOG_FORMAT=pretty writes lines for people', async () => {
  const cli = startCli({ env: { HTTP_HOST: '0.0.0.0', LOG_FORMAT: 'pretty' } })
  await cli.ready()
  expect(cli.stdout).toMatch(/WARN.*authentication is off/)
})

test.each(['http', 'api'] as const)('start - the port of %s is in use: the refusal names it', async (listener) => {
  const port = await takenPort()
  expect(await refusalOf({ store: { path: testFolder() }, [listener]: { port } })).toBe(
    `${listener}.port: port ${port} on 127.0.0.1 is in use; stop the other process or choose another port`,
  )
})

test('start - an address that this machine does not have: the refusal names it', async () => {
  expect(await refusalOf({ store: { path: testFolder() }, http: { host: '192.0.2.1' } })).toBe(
    'http.host: 192.0.2.1 is not an address of this machine',
  )
})

test('start - a second process on the same store: one line, exit code 1, and the first continues', async () => {
  const store = testFolder()
  const { http } = await serve({ store: { path: store } })
  const second = startCli({ env: { STORE_PATH: store } })
  await expect(second.ready()).rejects.toThrow('ended before the ready line')
  expect(await second.exited).toEqual({ code: 1, signal: null })
  expect(second.stdout).not.toContain('fatal')
  expect(second.stderr).toMatch(/^signalbox: store\.path: .*\n$/)
  expect(second.stderr).toContain(store)
  expect((await callTool(http.url, 'queue_send', { channel: 'q', body: 'x' })).isError).toBe(false)
})

// Where mkdir says ENOENT below a folder that is there, a recursive one of Node's never returns.
test.runIf(existsSync('/proc/self'))('start - a store where no folder can be made: the refusal says why', async () => {
  expect(await refusalOf({ store: { path: '/proc/signalbox/store' } })).toMatch(
    /^store\.path: cannot create the store's folder: \/proc\/signalbox\/store: ENOENT/,
  )
})

test.each(['a file is in the way of the folder', 'a file is in the way of its parent'])(
  'start - a store that cannot be written, because %s: the refusal names the file',
  async (why) => {
    const file = join(testFolder(), 'file')
    writeFileSync(file, 'precious')
    const path = why.endsWith('folder') ? file : join(file, 'store')
    const line = await refusalOf({ store: { path } })
    expect(line).toMatch(/^store\.path: /)
    expect(line).toContain(file)
    expect(readFileSync(file, 'utf8')).toBe('precious')
  },
)

/** A store that a server has written and closed, and the path of its database. */
async function writtenStore(): Promise<{ store: string; file: string }> {
  const store = join(testFolder(), 'store')
  mkdirSync(store)
  const server = await serve({ store: { path: store } })
  await callTool(server.http.url, 'queue_send', { channel: 'q', body: 'x'.repeat(100_000) })
  await server.close()
  // The largest file may be the reserve of disk space, which no start reads.
  const data = readdirSync(store).find((name) => name.endsWith('.db'))
  return { store, file: join(store, data!) }
}

test.each<[string, (file: string) => void]>([
  ['cut short', (file) => truncateSync(file, Math.floor(statSync(file).size / 2))],
  ['replaced by garbage', (file) => writeFileSync(file, Buffer.alloc(statSync(file).size, 'garbage '))],
])('start - a store whose file was %s: the refusal names it, and nothing is touched', async (_how, damage) => {
  const { store, file } = await writtenStore()
  damage(file)
  const before = fingerprint(store)
  const line = await refusalOf({ store: { path: store } })
  expect(line).toMatch(/^store\.path: /)
  expect(line).toContain(file)
  expect(fingerprint(store)[file.slice(store.length + 1)]).toBe(before[file.slice(store.length + 1)])
})

test('start - a failure closes everything that was opened before', async () => {
  const store = testFolder()
  const port = await takenPort()
  const config = createConfig({ http: { port }, api: { port: 0 }, store: { path: store }, log: { level: 'silent' } })
  await expect(startServer(config)).rejects.toMatchObject({ code: 'START_FAILED' })
  // The store is free: nothing holds its lock.
  const server = await serve({ store: { path: store } })
  expect((await fetch(`${server.http.url}/ready`)).status).toBe(200)
})
