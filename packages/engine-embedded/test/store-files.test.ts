import { backupStore, EmbeddedEngineError, openEmbeddedEngine, recoverStore } from '@signalbox/engine-embedded'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import { Folder, queued, receive, textsOf } from './support/store.ts'

const CHILD = fileURLToPath(new URL('./support/loader-child.ts', import.meta.url))

test('lock - a second engine in the same process is refused, and the first continues', async () => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  const refusal = await folder.open().then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(refusal).toBeInstanceOf(EmbeddedEngineError)
  expect(refusal).toMatchObject({ code: 'STORE_LOCKED', file: folder.file('signalbox.lock') })
  expect(String(refusal)).toContain(folder.path)
  expect(await engine.queues.send('queue', queued('x'))).toMatchObject({ sequence: 1 })
  // Refusing must not have freed the lock.
  await expect(folder.open()).rejects.toMatchObject({ code: 'STORE_LOCKED' })
})

test('lock - a second process is refused until the first one is killed', async () => {
  await using folder = await Folder.make()
  const child = spawn(process.execPath, ['--conditions=@signalbox/source', CHILD, folder.path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    await once(createInterface({ input: child.stdout }), 'line')
    await expect(folder.open()).rejects.toMatchObject({ code: 'STORE_LOCKED' })
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
  await using engine = await folder.open()
  expect((await engine.health()).ok).toBe(true)
})

test('lock - close releases the lock', async () => {
  await using folder = await Folder.make()
  await (await folder.open()).close()
  await using engine = await folder.open()
  expect(engine.path).toBe(folder.path)
})

/** Who may do what with a folder and the files in it. */
async function modes(folder: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const name of ['.', ...(await readdir(folder))]) {
    found[name] = ((await stat(join(folder, name))).mode & 0o777).toString(8)
  }
  return found
}

const FILES = { 'signalbox.db': '600', 'signalbox.lock': '600' }
const OPEN_FILES = { ...FILES, 'signalbox.db-shm': '600', 'signalbox.db-wal': '600' }

test.skipIf(process.platform === 'win32')(
  'file modes - nobody else can read a store, its copies, or what an older version wrote',
  async () => {
    await using folder = await Folder.make()
    const path = join(folder.path, 'new', 'store')
    const umask = process.umask(0)
    try {
      {
        await using engine = await openEmbeddedEngine({ path })
        await engine.queues.send('queue', queued('secret'))
        expect(await modes(path)).toMatchObject({ '.': '700', ...OPEN_FILES })
        const { file } = backupStore(path, join(folder.path, 'backup.db'))
        expect((await stat(file)).mode & 0o777).toBe(0o600)
      }
      const copy = join(folder.path, 'recovered')
      recoverStore(path, copy)
      expect(await modes(copy)).toEqual({ '.': '700', 'signalbox.db': '600' })

      // As an older version left them.
      await chmod(path, 0o755)
      for (const name of await readdir(path)) await chmod(join(path, name), 0o644)
      {
        await using engine = await openEmbeddedEngine({ path })
        await engine.queues.send('queue', queued('secret'))
        expect(await modes(path)).toMatchObject({ '.': '700', ...OPEN_FILES })
      }

      // A folder that holds other things is somebody else's to close.
      const shared = join(folder.path, 'shared')
      await mkdir(shared, { mode: 0o755 })
      await writeFile(join(shared, 'other'), '', { mode: 0o644 })
      await using engine = await openEmbeddedEngine({ path: shared })
      await engine.queues.send('queue', queued('secret'))
      expect(await modes(shared)).toMatchObject({ '.': '755', other: '644', ...OPEN_FILES })
    } finally {
      process.umask(umask)
    }
  },
)

/** Makes a store that something is wrong with. */
async function spoilt(folder: Folder, pragma: string): Promise<void> {
  await (await folder.open()).close()
  const database = new Database(folder.file('signalbox.db'))
  database.pragma(pragma)
  database.close()
}

test.each([
  ['application_id = 7', 'STORE_DAMAGED', 'not a Signalbox store'],
  ['user_version = 99', 'STORE_VERSION', 'has format 99, this program supports 1 to 2'],
])('backup - with %s nothing is copied', async (pragma, code, text) => {
  await using folder = await Folder.make()
  await spoilt(folder, pragma)
  const target = folder.file('copy.db')
  expect(() => backupStore(folder.path, target)).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(text) }),
  )
  expect(existsSync(target)).toBe(false)
})

test("backup - runs in the engine's process without stopping it, and replaces the remains of a crashed one", async () => {
  await using folder = await Folder.make()
  await using other = await Folder.make()
  await using engine = await folder.open()
  await engine.queues.send('q', queued('before'))
  writeFileSync(other.file('copy.db.part'), 'half a copy')
  const { file, bytes } = backupStore(folder.path, other.file('copy.db'))
  expect(bytes).toBeGreaterThan(0)
  expect(readdirSync(other.path)).toEqual(['copy.db'])
  await engine.queues.send('q', queued('after'))
  await using restored = await Folder.make()
  copyFileSync(file, restored.file('signalbox.db'))
  await using copy = await restored.open()
  expect(textsOf(await receive(copy, 'q'))).toEqual(['before'])
  expect(textsOf(await receive(engine, 'q'))).toEqual(['before', 'after'])
})
