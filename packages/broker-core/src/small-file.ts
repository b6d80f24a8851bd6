import type { BigIntStats } from 'node:fs'
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { open, stat } from 'node:fs/promises'

/** The most bytes of a file with settings, keys or certificates: ten thousand rules of a policy fit in it. */
const MAX_SMALL_FILE_BYTES = 4_194_304

/** Opening a FIFO without O_NONBLOCK, which Windows does not have, waits for a writer. */
const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

/** The text of a file, and which version of the file it is. */
export interface SmallFile {
  readonly text: string
  readonly version: string
}

/**
 * Reads a regular file of at most 4 MiB.
 * @throws Error saying why the file cannot be read
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
 * @throws Error saying why the file cannot be read
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

/** Returns which version of a file is there now. @throws Error saying why the file cannot be read */
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

/** A file that is not read, with the reason. */
class RefusedFile extends Error {}

/** What was read of a file. Its size in the stats is no bound: it may grow meanwhile, and files in /proc have none. */
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

  /** Takes so many bytes out of {@link chunk}; none means that the file is at its end. */
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
