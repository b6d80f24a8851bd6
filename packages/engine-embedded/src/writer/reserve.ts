import { randomBytes } from 'node:crypto'
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

import { FILE_MODE } from '../store/files.ts'

const MIN_BYTES = 256 * 1024
const MAX_BYTES = 16 * 1024 * 1024
/** Of the file system; a small one is not taken up by the reserve. */
const SHARE = 16

const CHUNK = 1024 * 1024

/** A file that takes room on the disk for the time when it is full: removing messages needs some too. */
export class Reserve {
  readonly #file: string
  readonly bytes: number

  constructor(file: string) {
    this.#file = file
    const { blocks, bsize } = statfsSync(dirname(file))
    this.bytes = Math.min(Math.max(Math.floor((blocks * bsize) / SHARE), MIN_BYTES), MAX_BYTES)
  }

  /** Bytes on the file system that we may still take. */
  get available(): number {
    const { bavail, bsize } = statfsSync(dirname(this.#file))
    return bavail * bsize
  }

  get held(): boolean {
    return (statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0) >= this.bytes
  }

  /** Takes the room, unless that would fill the disk; false when it is not held. */
  take(): boolean {
    if (this.held) return true
    if (this.available < this.bytes * 1.25) return false
    try {
      const descriptor = openSync(this.#file, 'w', FILE_MODE)
      try {
        // Random, so that no file system stores it in less.
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

  /** Gives the room back. */
  free(): void {
    rmSync(this.#file, { force: true })
  }
}
