import { copyFile, mkdir, readFile, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import Database from 'better-sqlite3'

import { Folder, queued, receive, textsOf } from './support/store.ts'

const PAGE = 8192

/** A store with some messages, closed. */
async function storeWithMessages(): Promise<Folder> {
  const folder = await Folder.make()
  const engine = await folder.open()
  for (let i = 0; i < 50; i++) await engine.queues.send('queue', queued(`${i} ${'x'.repeat(2_000)}`))
  await engine.close()
  return folder
}

async function snapshot(folder: Folder): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  for (const name of await readdir(folder.path)) {
    // The lock is taken to look at the rest; it holds nothing.
    if (!name.startsWith('signalbox.lock')) files[name] = (await readFile(folder.file(name))).toString('base64')
  }
  return files
}

/** How opening fails, and whether every file is as it was. */
async function refusal(folder: Folder): Promise<{ error: unknown; untouched: boolean }> {
  const before = await snapshot(folder)
  const error = await folder.open().then(
    (engine) => engine.close(),
    (thrown: unknown) => thrown,
  )
  return { error, untouched: JSON.stringify(await snapshot(folder)) === JSON.stringify(before) }
}

function namingTheDataFile(folder: Folder, code: string): object {
  const file = folder.file('signalbox.db')
  return { error: { name: 'EmbeddedEngineError', code, file, message: expect.stringContaining(file) }, untouched: true }
}

test.each([
  ['garbage', async (file: string) => writeFile(file, Buffer.alloc(8192, 'garbage'))],
  ['empty', async (file: string) => truncate(file, 0)],
  ['cut within the header', async (file: string) => truncate(file, 60)],
  ['cut in the middle', async (file: string) => truncate(file, Math.floor((await stat(file)).size / 2))],
  ['cut by one page', async (file: string) => truncate(file, (await stat(file)).size - PAGE)],
  [
    'another program’s database',
    async (file: string) => {
      await rm(file)
      new Database(file).exec('CREATE TABLE t (x)').close()
    },
  ],
])('damaged store - a data file that is %s is refused and left alone', async (_, damage) => {
  await using folder = await storeWithMessages()
  await rm(folder.file('signalbox.db-wal'), { force: true })
  await rm(folder.file('signalbox.db-shm'), { force: true })
  await damage(folder.file('signalbox.db'))
  expect(await refusal(folder)).toMatchObject(namingTheDataFile(folder, 'STORE_DAMAGED'))
})

test('damaged store - a WAL without its data file is refused', async () => {
  await using folder = await storeWithMessages()
  await rm(folder.file('signalbox.db'))
  await writeFile(folder.file('signalbox.db-wal'), Buffer.alloc(100, 1))
  expect(await refusal(folder)).toMatchObject(namingTheDataFile(folder, 'STORE_DAMAGED'))
})

test('damaged store - tables overwritten behind a good header are refused', async () => {
  await using folder = await storeWithMessages()
  const file = folder.file('signalbox.db')
  const bytes = await readFile(file)
  await writeFile(file, Buffer.concat([bytes.subarray(0, 100), Buffer.alloc(bytes.length - 100, 0xab)]))
  await expect(folder.open()).rejects.toMatchObject({ code: 'STORE_DAMAGED', file })
})

test('damaged store - a store of a newer version is refused and left alone', async () => {
  await using folder = await storeWithMessages()
  const file = folder.file('signalbox.db')
  const bytes = await readFile(file)
  bytes.writeUInt32BE(99, 60)
  await writeFile(file, bytes)
  await rm(folder.file('signalbox.db-wal'), { force: true })
  expect(await refusal(folder)).toMatchObject(namingTheDataFile(folder, 'STORE_VERSION'))
})

test('damaged store - a folder that cannot be made is named', async () => {
  await using folder = await Folder.make()
  const file = folder.file('a-file')
  await writeFile(file, '')
  const { openEmbeddedEngine } = await import('@signalbox/engine-embedded')
  const path = join(file, 'store')
  await expect(openEmbeddedEngine({ path })).rejects.toMatchObject({ code: 'STORE_UNWRITABLE', file: path })
})

test('damaged store - an unfinished end of the WAL is normal', async () => {
  await using folder = await Folder.make()
  await using copy = await Folder.make()
  {
    await using engine = await folder.open()
    for (let i = 0; i < 20; i++) await engine.queues.send('queue', queued(String(i)))
    // As a crash would leave it: the files in the middle of things, and half a frame at the end of the WAL.
    await mkdir(copy.path, { recursive: true })
    for (const name of ['signalbox.db', 'signalbox.db-wal']) await copyFile(folder.file(name), copy.file(name))
  }
  const wal = copy.file('signalbox.db-wal')
  await writeFile(wal, Buffer.concat([await readFile(wal), Buffer.alloc(1_000, 7)]))
  await using engine = await copy.open()
  expect(textsOf(await receive(engine, 'queue'))).toEqual(Array.from({ length: 20 }, (_, i) => String(i)))
})

test('damaged store - a crash in the middle of copying the WAL back is normal', async () => {
  await using folder = await Folder.make()
  await using copy = await Folder.make()
  {
    await using engine = await folder.open()
    await engine.queues.send('queue', queued('first'))
    await engine.close()
  }
  {
    await using engine = await folder.open()
    for (let i = 0; i < 50; i++) await engine.queues.send('queue', queued(`${i} ${'x'.repeat(2_000)}`))
    for (const name of ['signalbox.db', 'signalbox.db-wal']) await copyFile(folder.file(name), copy.file(name))
  }
  // The first page was copied back, with the new length in it; the pages after the old end were not.
  const whole = await readFile(folder.file('signalbox.db'))
  const old = await readFile(copy.file('signalbox.db'))
  expect(whole.length).toBeGreaterThan(old.length)
  await writeFile(copy.file('signalbox.db'), Buffer.concat([whole.subarray(0, PAGE), old.subarray(PAGE)]))
  await using engine = await copy.open()
  expect(await receive(engine, 'queue')).toHaveLength(51)
})
