import { randomBytes } from 'node:crypto'
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

import { FILE_MODE } from '../store/files.ts'
import { isFull } from '../store/sqlite.ts'
import type { OperationKind } from './operations.ts'
import type { Checkpointer } from './wal.ts'

/** The time for which a commit shows that the disk accepts writes, in ms. */
const PROVEN_MS = 60_000

/**
 * The operations that permanently need space. The others remove rows, or use a little WAL space that a checkpoint
 * frees.
 */
const GROWS: ReadonlySet<OperationKind> = new Set(['send', 'append', 'createChannel', 'groupQueue', 'probe'])

/**
 * Handles a full disk: releases the reserve, accepts only operations that remove messages, and copies the WAL back
 * after each commit, so that removals can use its space. This ends when there is space for the reserve again.
 */
export class Space {
  readonly #reserve: Reserve
  readonly #checkpointer: Checkpointer
  #full: boolean
  #lastCommit = -Infinity

  /** Without space for the reserve the disk is full from the start: a restart does not end that state. */
  constructor(reserve: Reserve, checkpointer: Checkpointer) {
    this.#reserve = reserve
    this.#checkpointer = checkpointer
    this.#full = !reserve.possible
  }

  get full(): boolean {
    return this.#full
  }

  /** Returns whether only a write can show that the disk accepts messages. */
  get doubtful(): boolean {
    return this.#full || performance.now() - this.#lastCommit > PROVEN_MS || this.#isScarce()
  }

  /**
   * Handles a commit or checkpoint that found the disk full. Returns false if that is known already: no more space can
   * be freed.
   */
  handleFull(): boolean {
    if (this.#full) return false
    this.#full = true
    this.#reserve.free()
    ignoringFull(() => this.#checkpointer.restart())
    return true
  }

  refuses(kind: OperationKind): boolean {
    return this.#full && GROWS.has(kind)
  }

  /**
   * Checks the space; call it after every group that wrote.
   * @param copyBack Copies the WAL back now
   */
  afterCommit(copyBack: boolean): void {
    this.#lastCommit = performance.now()
    try {
      this.#checkpointer.afterCommit(this.#full || copyBack, () => this.#isScarce())
    } catch (error) {
      if (!isFull(error)) throw error
      // Acts while the contents of the WAL still fit into the space of the reserve: further commits could use up all
      // space.
      this.handleFull()
    }
  }

  /** Returns whether a checkpoint could soon lack the space for the contents of the WAL. */
  #isScarce(): boolean {
    return this.#reserve.available < 8 * this.#reserve.bytes + 2 * this.#checkpointer.walBytes()
  }

  /**
   * Creates the reserve if it is missing. On a full disk it first returns free pages to the file system. The disk counts
   * as full while there is no space for the reserve.
   */
  probe(): void {
    if (this.#full) ignoringFull(() => this.#makeRoom())
    else this.#full = !this.#reserve.take()
  }

  #makeRoom(): void {
    const wanted = this.#reserve.bytes * 1.5
    const walBytes = this.#checkpointer.walBytes()
    const missing = wanted - this.#reserve.available - walBytes
    if (missing > 0 && !this.#checkpointer.releasePages(missing)) return
    this.#checkpointer.truncate()
    if (this.#reserve.take()) this.#full = false
  }
}

/** Runs work whose failure on a full disk is harmless: the data file cannot grow, and the WAL keeps everything. */
function ignoringFull(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (!isFull(error)) throw error
  }
}

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
