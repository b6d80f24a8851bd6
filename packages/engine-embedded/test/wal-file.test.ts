import { expect, test } from 'vitest'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { isFatal } from '../src/store/sqlite.ts'
import { WalFile } from '../src/writer/wal.ts'

test('WAL - a sync that works throws nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-wal-'))
  try {
    const file = join(folder, 'wal')
    await writeFile(file, 'frames')
    const wal = new WalFile(file)
    expect(() => wal.sync()).not.toThrow()
    wal.close()
  } finally {
    await rm(folder, { recursive: true })
  }
})

// A device that takes writes and knows no sync: the error of a real call, as a failing disk gives one.
test.runIf(process.platform === 'linux')('WAL - a sync that fails ends the connection, as one of SQLite does', () => {
  const wal = new WalFile('/dev/null')
  let thrown: unknown
  try {
    wal.sync()
  } catch (error) {
    thrown = error
  }
  wal.close()
  expect(thrown).toMatchObject({ code: 'SQLITE_IOERR_FSYNC', message: expect.stringContaining('EINVAL') })
  expect(isFatal(thrown)).toBe(true)
})
