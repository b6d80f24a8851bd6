import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { encodeText } from '@signalbox/broker-core'
import { expect, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { runCli } from './support/cli.ts'
import { command } from './support/commands.ts'
import { serve } from './support/server.ts'

function backup(store: string, ...args: readonly string[]) {
  return runCli({ args: ['backup', ...args], env: { STORE_PATH: store } })
}

/** Runs the command in this process. */
function refused(store: string, ...args: readonly string[]) {
  return command(['backup', ...args], { env: { STORE_PATH: store } })
}

function textOf({ body }: { readonly body: Uint8Array }): string {
  return Buffer.from(body).toString()
}

/** Everything that is in the queue and the events store, in their order. */
async function contents({ broker }: Awaited<ReturnType<typeof serve>>): Promise<{ queue: string[]; log: string[] }> {
  const { queues, eventsStore } = broker.as({ clientId: 'reader' })
  const queue: string[] = []
  for (;;) {
    const deliveries = await queues.receive('work', { maxMessages: 100 })
    if (deliveries.length === 0) break
    queue.push(...deliveries.map(({ message }) => textOf(message)))
    await queues.ack(deliveries.map(({ receipt }) => receipt))
  }
  const log: string[] = []
  for (let fromSequence = 1; ;) {
    const events = await eventsStore.read('log', { fromSequence, maxMessages: 100 })
    log.push(...events.map(textOf))
    const last = events.at(-1)
    if (last === undefined) return { queue, log }
    fromSequence = last.sequence + 1
  }
}

test('backup - under load the copy has every message that was acknowledged before its start', async () => {
  const path = testFolder()
  const server = await serve({ store: { path } })
  const { queues, eventsStore } = server.broker.as({ clientId: 'producer' })
  const acknowledged = { queue: [] as string[], log: [] as string[] }
  const stop = new AbortController()
  const produce = async (producer: number): Promise<void> => {
    for (let n = 0; !stop.signal.aborted; n++) {
      const text = `${producer}-${n}`
      await queues.send('work', { body: encodeText(text) })
      acknowledged.queue.push(text)
      await eventsStore.publish('log', { body: encodeText(text) })
      acknowledged.log.push(text)
    }
  }
  const load = Promise.all(Array.from({ length: 8 }, (_, producer) => produce(producer)))
  await expect.poll(() => acknowledged.log.length, { timeout: 20_000 }).toBeGreaterThan(500)
  const before = { queue: [...acknowledged.queue], log: [...acknowledged.log] }
  const file = join(testFolder(), 'copy.db')
  const { code, stdout, stderr } = await backup(path, file)
  const during = acknowledged.log.length - before.log.length
  stop.abort()
  await load
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${file}: ${statSync(file).size} bytes\n`, stderr: '' })
  expect(statSync(file).mode & 0o077).toBe(0)
  expect(existsSync(`${file}.part`)).toBe(false)
  expect(during, 'the server goes on meanwhile').toBeGreaterThan(0)

  const restored = testFolder()
  copyFileSync(file, join(restored, 'signalbox.db'))
  const found = await contents(await serve({ store: { path: restored } }))
  for (const kind of ['queue', 'log'] as const) {
    const there = new Set(found[kind])
    expect(there.size, 'each is there once').toBe(found[kind].length)
    expect(before[kind].filter((text) => !there.has(text))).toEqual([])
  }
  // One moment: whoever published to the log had sent to the queue before.
  const queued = new Set(found.queue)
  expect(found.log.filter((text) => !queued.has(text))).toEqual([])
}, 60_000)

test('backup - a stopped server can be copied, and both the store and the copy start', async () => {
  const path = testFolder()
  const first = await serve({ store: { path } })
  await first.broker.as({ clientId: 'a' }).queues.send('work', { body: encodeText('x') })
  await first.close()
  const restored = testFolder()
  expect((await backup('/nowhere', join(restored, 'signalbox.db'), '--store-path', path)).code).toBe(0)
  for (const store of [{ path }, { path: restored }]) {
    expect((await contents(await serve({ store }))).queue).toEqual(['x'])
  }
})

test('backup - a failure is one line and exit code 1, and leaves no file', async () => {
  const path = testFolder()
  await (await serve({ store: { path } })).close()
  const folder = testFolder()
  const taken = join(folder, 'taken')
  writeFileSync(taken, 'mine')
  const garbage = join(testFolder(), 'garbage')
  mkdirSync(garbage)
  writeFileSync(join(garbage, 'signalbox.db'), 'garbage '.repeat(1000))
  const cut = testFolder()
  writeFileSync(join(cut, 'signalbox.db'), readFileSync(join(path, 'signalbox.db')).subarray(0, 3 * 8192))
  const target = join(folder, 'copy.db')
  const cases: readonly (readonly [string, string, RegExp])[] = [
    [path, taken, /cannot write the backup: .*taken: it exists already and is not overwritten; choose another file/],
    [path, join(folder, 'no', 'copy.db'), /cannot write the backup: .*copy\.db: ENOENT/],
    [path, join(taken, 'copy.db'), /cannot write the backup: .*copy\.db: ENOTDIR/],
    [join(folder, 'nobody'), target, /cannot read the store: .*signalbox\.db: .*; name the folder of a store/],
    [garbage, target, /the store is damaged: .*signalbox\.db: file is not a database/],
    [cut, target, /the store is damaged: .*signalbox\.db: database disk image is malformed/],
  ]
  for (const [store, file, problem] of cases) {
    const { code, stdout, stderr } = await refused(store, file)
    expect([stderr, code, stdout]).toEqual([stderr, 1, ''])
    expect(stderr).toMatch(/^signalbox: backup: [^\n]*\n$/)
    expect(stderr).toMatch(problem)
  }
  expect(readFileSync(taken, 'utf8')).toBe('mine')
  expect(readdirSync(folder)).toEqual(['taken'])
}, 60_000)

test('backup - a wrong call is exit code 2, with the allowed arguments', async () => {
  const usage = 'signalbox: backup: allowed is signalbox backup FILE [--store-path FOLDER] [--config FILE]\n'
  expect(await refused('x')).toEqual({ code: 2, stdout: '', stderr: usage })
  expect(await refused('x', 'a', 'b')).toEqual({ code: 2, stdout: '', stderr: usage })
  const cluster = await command(['backup', 'a'], { env: { ENGINE: 'nats' } })
  expect(cluster).toMatchObject({ code: 2, stderr: expect.stringMatching(/^signalbox: backup: the engine is nats/) })
})

test('restore - a backup becomes a store in an empty folder, with every message', async () => {
  const path = testFolder()
  const server = await serve({ store: { path } })
  await server.broker.as({ clientId: 'producer' }).queues.send('work', { body: encodeText('kept') })
  const copy = join(testFolder(), 'monday.db')
  expect(await backup(path, copy)).toMatchObject({ code: 0 })
  await server.close()
  const target = join(testFolder(), 'new', 'store')
  const restored = await command(['restore', copy, `--store-path=${target}`])
  expect(restored).toMatchObject({ code: 0, stderr: '' })
  expect(restored.stdout).toMatch(/signalbox\.db: \d+ bytes\n$/)
  const next = await serve({ store: { path: target } })
  expect(await contents(next)).toEqual({ queue: ['kept'], log: [] })

  const running = await command(['restore', copy, `--store-path=${target}`])
  expect(running).toMatchObject({ code: 1, stderr: expect.stringMatching(/^signalbox: restore: .*in use[^\n]*\n$/) })
  await next.close()
  const full = await command(['restore', copy, `--store-path=${target}`])
  expect(full).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('it contains signalbox.db; move all files away'),
  })
})

test.each([
  ['a text', (bytes: Buffer) => bytes.fill('x', 0, 4096), /does not begin|not a database|damaged/],
  ['a store of a newer version', (bytes: Buffer) => void bytes.writeUInt32BE(99, 60), /has format 99, this program/],
  ['a database of another program', (bytes: Buffer) => void bytes.writeUInt32BE(7, 68), /not a Signalbox store/],
  ['a damaged page', (bytes: Buffer) => bytes.fill(0xab, 4 * 8192, 5 * 8192), /the store is damaged/],
])('restore - refuses a backup that is %s, and leaves no store', async (_what, change, reason) => {
  const path = testFolder()
  const server = await serve({ store: { path } })
  await server.broker.as({ clientId: 'producer' }).queues.send('work', { body: encodeText('x'.repeat(50_000)) })
  const copy = join(testFolder(), 'monday.db')
  expect(await refused(path, copy)).toMatchObject({ code: 0 })
  await server.close()
  const bytes = readFileSync(copy)
  change(bytes)
  writeFileSync(copy, bytes)
  const target = testFolder()
  const { code, stdout, stderr } = await command(['restore', copy, `--store-path=${target}`])
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(reason)
  expect(readdirSync(target).filter((name) => !name.startsWith('signalbox.lock'))).toEqual([])
})

test('backup - a context of another machine is refused, because the store is not here', async () => {
  const env = { XDG_CONFIG_HOME: testFolder() }
  await command(['context', 'add', 'production', '--url=https://broker.example.com'], { env })
  for (const args of [
    ['backup', 'x.db'],
    ['restore', 'x.db'],
    ['backup', 'x.db', '--context=production'],
  ]) {
    const { code, stderr } = await command(args, { env })
    expect(code).toBe(2)
    expect(stderr).toContain('the context is the server https://broker.example.com')
  }
  const here = await command(['backup', 'x.db', `--store-path=${testFolder()}`], { env })
  expect(here.stderr).not.toContain('context')
})
