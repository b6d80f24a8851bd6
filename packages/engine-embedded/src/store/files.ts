import { chmodSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * The mode of store files: only their owner may read them. SQLite gives `-wal` and `-shm` the mode of their data file.
 */
export const FILE_MODE = 0o600
const FOLDER_MODE = 0o700
const OWN_FILE = /^signalbox\./

/** The files of a store. While the data file is open, SQLite keeps `-wal` and `-shm` next to it. */
export interface StoreFiles {
  readonly folder: string
  readonly data: string
  readonly wal: string
  readonly lock: string
  /** The file that reserves disk space for the time when the disk is full. */
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
 * Creates a folder for its owner alone, and its missing parents. Does not use the `recursive` option of mkdir: if the
 * system answers ENOENT below an existing folder, as under /proc, it never returns (Node 24).
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
 * Removes the permissions of other users from the files of a store, which an older version or a manual copy may have
 * left; and from the folder, if it contains no other files.
 */
export function protectFiles(folder: string): void {
  const names = readdirSync(folder)
  if (names.every((name) => OWN_FILE.test(name))) setMode(folder, FOLDER_MODE)
  for (const name of names) if (OWN_FILE.test(name)) setMode(join(folder, name), FILE_MODE)
}

/**
 * Creates a missing file with the right mode, before SQLite creates it with the default mode. Does not open an existing
 * file: closing it would release the locks of this process.
 */
export function touchFile(file: string): void {
  if (!existsSync(file)) closeSync(openSync(file, 'wx', FILE_MODE))
}

function setMode(path: string, mode: number): void {
  try {
    chmodSync(path, mode)
  } catch {
    // Another user owns the file and lets this one use it.
  }
}

/**
 * Syncs a file, or the names in a folder, so that they survive a power failure. Never use it for an open data file:
 * that releases its locks.
 */
export function syncPath(path: string): void {
  if (process.platform === 'win32') return
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
