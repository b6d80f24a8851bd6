import { chmodSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** What a store holds is for its owner alone. SQLite gives `-wal` and `-shm` the mode of their data file. */
export const FILE_MODE = 0o600
const FOLDER_MODE = 0o700
const OWN_FILE = /^signalbox\./

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
 * Makes a folder that its owner alone may look into, and those above it that are missing. Not by mkdir's own `recursive`: where the system answers ENOENT below a
 * folder that is there, as under /proc, that never returns (Node 24).
 */
export function makeFolder(folder: string): void {
  makeFolders(folder, FOLDER_MODE)
}

function makeFolders(folder: string, mode?: number): void {
  const parent = dirname(folder)
  if (!existsSync(parent)) makeFolders(parent)
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}

/**
 * Takes what others may do with the files of a store away, as an older version or a copy by hand left them; and with the
 * folder, where it holds nothing else.
 */
export function protectFiles(folder: string): void {
  const names = readdirSync(folder)
  if (names.every((name) => OWN_FILE.test(name))) setMode(folder, FOLDER_MODE)
  for (const name of names) if (OWN_FILE.test(name)) setMode(join(folder, name), FILE_MODE)
}

/**
 * Makes a file that is not there yet, before SQLite does with a mode of its own. One that is there is not opened: closing
 * it would drop the locks that this process has on it.
 */
export function touchFile(file: string): void {
  if (!existsSync(file)) closeSync(openSync(file, 'wx', FILE_MODE))
}

function setMode(path: string, mode: number): void {
  try {
    chmodSync(path, mode)
  } catch {
    // It is somebody else's, who lets us use it.
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
