import type { BigIntStats } from 'node:fs'
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { open, stat } from 'node:fs/promises'

/**
 * The maximum size of a file with settings, keys or certificates, in bytes: enough for a policy of ten thousand rules.
 */
const MAX_SMALL_FILE_BYTES = 4_194_304

/** Opening a FIFO without O_NONBLOCK waits for a writer. Windows does not have the flag. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

/** A file's text, and an id of this version of the file. */
export interface SmallFile {
  readonly text: string
  readonly version: string
}

/**
 * Reads a regular file of at most 4 MiB.
 * @throws Error with the reason, if the file cannot be read
 */
export function readSmallFileSync(file: string): SmallFile {
  try {
    const descriptor = openSync(file, FLAGS)
    try {
      const content = new Content(fstatSync(descriptor, { bigint: true }))
      while (!content.complete) content.take(readSync(descriptor, content.chunk))
      return content.read()
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    throw unreadable(file, error)
  }
}

/**
 * Reads a regular file of at most 4 MiB without blocking the event loop.
 * @throws Error with the reason, if the file cannot be read
 */
export async function readSmallFile(file: string): Promise<SmallFile> {
  try {
    const handle = await open(file, FLAGS)
    try {
      const content = new Content(await handle.stat({ bigint: true }))
      while (!content.complete) content.take((await handle.read(content.chunk)).bytesRead)
      return content.read()
    } finally {
      await handle.close()
    }
  } catch (error) {
    throw unreadable(file, error)
  }
}

/** Returns the id of the file's current version. @throws Error with the reason, if the file cannot be read */
export async function versionOfFile(file: string): Promise<string> {
  try {
    return versionOf(await stat(file, { bigint: true }))
  } catch (error) {
    throw unreadable(file, error)
  }
}

function versionOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
}

/** The reason why a file is not read. */
class RefusedFile extends Error {}

/**
 * The content of a file as it is read. The size in the stats is no bound: the file may grow meanwhile, and files in
 * /proc report none.
 */
class Content {
  readonly chunk = Buffer.allocUnsafe(65_536)
  readonly #version: string
  readonly #chunks: Buffer[] = []
  #size = 0
  #complete = false

  constructor(stats: BigIntStats) {
    if (!stats.isFile()) throw new RefusedFile('it is not a regular file')
    if (stats.size > MAX_SMALL_FILE_BYTES) throw tooLarge(String(stats.size))
    this.#version = versionOf(stats)
  }

  get complete(): boolean {
    return this.#complete
  }

  /** Adds the given number of bytes from {@link chunk}; 0 means the end of the file. */
  take(bytes: number): void {
    this.#size += bytes
    if (this.#size > MAX_SMALL_FILE_BYTES) throw tooLarge(`more than ${MAX_SMALL_FILE_BYTES}`)
    this.#chunks.push(Buffer.from(this.chunk.subarray(0, bytes)))
    this.#complete = bytes === 0
  }

  read(): SmallFile {
    return { text: Buffer.concat(this.#chunks).toString('utf8'), version: this.#version }
  }
}

function tooLarge(bytes: string): RefusedFile {
  return new RefusedFile(`it has ${bytes} bytes; at most ${MAX_SMALL_FILE_BYTES} are allowed`)
}

function unreadable(file: string, error: unknown): Error {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
  const reason = error instanceof RefusedFile ? error.message : code
  return new Error(`cannot read ${JSON.stringify(file)} (${reason})`, { cause: error })
}
