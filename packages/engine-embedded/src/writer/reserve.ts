import { randomBytes } from 'node:crypto'
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

import { FILE_MODE } from '../store/files.ts'

const MIN_BYTES = 256 * 1024
const MAX_BYTES = 16 * 1024 * 1024
/** The divisor for the maximum share of the file system: the reserve must not fill a small one. */
const SHARE = 16

/** The share of free space that the reserve must not use up. */
const MARGIN = 1.25

/** The space that opening a store may need: for the lock, the index of the WAL, and the first commit. */
const OPENING_BYTES = 128 * 1024

const CHUNK = 1024 * 1024

/** A file that reserves disk space for the time when the disk is full, because removing messages needs space too. */
export class Reserve {
  readonly #file: string
  readonly bytes: number

  constructor(file: string) {
    this.#file = file
    const { blocks, bsize } = statfsSync(dirname(file))
    this.bytes = Math.min(Math.max(Math.floor((blocks * bsize) / SHARE), MIN_BYTES), MAX_BYTES)
  }

  /** Returns the bytes on the file system that this process may still use. Some file systems do not know: Infinity. */
  get available(): number {
    const { bavail, blocks, bsize } = statfsSync(dirname(this.#file))
    return blocks === 0 ? Infinity : bavail * bsize
  }

  /** Returns the free bytes that creating the reserve needs. */
  get needed(): number {
    return this.bytes * MARGIN
  }

  /** Returns whether the reserve exists or can be created. */
  get possible(): boolean {
    return this.held || this.available >= this.needed
  }

  get held(): boolean {
    return (statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0) >= this.bytes
  }

  /** Creates the reserve, unless that would fill the disk; returns false if there is no reserve. */
  take(): boolean {
    if (this.held) return true
    if (!this.possible) return false
    try {
      const descriptor = openSync(this.#file, 'w', FILE_MODE)
      try {
        // Random data, so that no file system compresses it.
        const chunk = randomBytes(Math.min(CHUNK, this.bytes))
        for (let written = 0; written < this.bytes;) {
          written += writeSync(descriptor, chunk, 0, Math.min(chunk.length, this.bytes - written))
        }
      } finally {
        closeSync(descriptor)
      }
      return true
    } catch {
      this.free()
      return false
    }
  }

  /** Deletes the reserve if the disk is so full that the store could not be opened to remove messages. */
  freeToOpen(): void {
    if (this.available < OPENING_BYTES) this.free()
  }

  /** Deletes the reserve. */
  free(): void {
    rmSync(this.#file, { force: true })
  }
}
