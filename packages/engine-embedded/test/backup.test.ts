import Database from 'better-sqlite3'
import { copyFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'

import { backupStore } from '@signalbox/engine-embedded'

import { Folder, queued, receive, textsOf } from './support/store.ts'

/** Makes a store that something is wrong with. */
async function spoilt(folder: Folder, pragma: string): Promise<void> {
  await (await folder.open()).close()
  const database = new Database(folder.file('signalbox.db'))
  database.pragma(pragma)
  database.close()
}

test.each([
  ['application_id = 7', 'STORE_DAMAGED', 'not a Signalbox store'],
  ['user_version = 99', 'STORE_VERSION', 'has format 99, this program supports 1'],
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
