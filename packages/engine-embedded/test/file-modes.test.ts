import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

import { backupStore, openEmbeddedEngine, recoverStore } from '@signalbox/engine-embedded'

import { Folder, queued } from './support/store.ts'

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
