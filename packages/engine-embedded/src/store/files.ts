import { closeSync, fsyncSync, openSync } from 'node:fs'
import { join } from 'node:path'

/** The files of a store. SQLite keeps `-wal` and `-shm` beside the data file while it is open. */
export interface StoreFiles {
  readonly folder: string
  readonly data: string
  readonly wal: string
  readonly lock: string
}

export function storeFiles(folder: string): StoreFiles {
  const data = join(folder, 'signalbox.db')
  return { folder, data, wal: `${data}-wal`, lock: join(folder, 'signalbox.lock') }
}

/** Makes a file, or the names in a folder, survive a power cut. Never for a data file that is open: that drops its locks. */
export function syncPath(path: string): void {
  if (process.platform === 'win32') return
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
