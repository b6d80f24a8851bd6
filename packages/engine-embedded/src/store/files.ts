import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The files of a store. SQLite keeps `-wal` and `-shm` beside the data file while it is open. */
export interface StoreFiles {
  readonly folder: string
  readonly data: string
  readonly wal: string
  readonly lock: string
  /** Takes room for the time when the disk is full. */
  readonly reserve: string
}

export function storeFiles(folder: string): StoreFiles {
  const data = join(folder, 'signalbox.db')
  return {
    folder,
    data,
    wal: `${data}-wal`,
    lock: join(folder, 'signalbox.lock'),
    reserve: join(folder, 'signalbox.reserve'),
  }
}

/**
 * Makes a folder and those above it that are missing. Not by mkdir's own `recursive`: where the system answers ENOENT below a
 * folder that is there, as under /proc, that never returns (Node 24).
 */
export function makeFolder(folder: string): void {
  const parent = dirname(folder)
  if (!existsSync(parent)) makeFolder(parent)
  try {
    mkdirSync(folder)
  } catch (error) {
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
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
