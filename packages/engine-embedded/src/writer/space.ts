import { isFull } from '../store/sqlite-code.ts'
import type { Checkpointer } from './checkpointer.ts'
import type { OperationKind } from './operations.ts'
import type { Reserve } from './reserve.ts'

/** The delay after opening until the reserve is created, and the interval of further attempts, in ms. */
const FIRST_MS = 1_000
const AGAIN_MS = 60_000

/**
 * The operations that permanently need space. The others remove rows, or use a little WAL space that a checkpoint
 * frees.
 */
const GROWS: ReadonlySet<OperationKind> = new Set(['send', 'append', 'createChannel', 'probe'])

/**
 * Handles a full disk: releases the reserve, accepts only operations that remove messages, and copies the WAL back
 * after each commit, so that removals can use its space. This ends when there is space for the reserve again.
 */
export class Space {
  readonly #reserve: Reserve
  readonly #checkpointer: Checkpointer
  #full = false
  #timer: NodeJS.Timeout

  constructor(reserve: Reserve, checkpointer: Checkpointer) {
    this.#reserve = reserve
    this.#checkpointer = checkpointer
    this.#timer = setTimeout(() => this.#setAside(), FIRST_MS).unref()
  }

  #setAside(): void {
    if (!this.#full) this.#reserve.take()
    this.#timer = setTimeout(() => this.#setAside(), AGAIN_MS).unref()
  }

  /**
   * Handles a commit or checkpoint that found the disk full. Returns false if that is known already: no more space can
   * be freed.
   */
  met(): boolean {
    if (this.#full) return false
    this.#full = true
    this.#reserve.free()
    ignoringFull(() => this.#checkpointer.restart())
    return true
  }

  refuses(kind: OperationKind): boolean {
    return this.#full && GROWS.has(kind)
  }

  /** Checks the space; call it after every group that wrote. */
  afterCommit(): void {
    try {
      this.#checkpointer.afterCommit(this.#full, () => this.#isScarce())
    } catch (error) {
      if (!isFull(error)) throw error
      // Acts while the contents of the WAL still fit into the space of the reserve: further commits could use up all
      // space.
      this.met()
    }
  }

  /** Returns whether a checkpoint could soon lack the space for the contents of the WAL. */
  #isScarce(): boolean {
    return this.#reserve.available < 8 * this.#reserve.bytes + 2 * this.#checkpointer.walBytes()
  }

  /**
   * Returns free pages to the file system, and creates the reserve if there is space for it: then the disk counts as
   * no longer full.
   */
  probe(): void {
    if (!this.#full) return
    ignoringFull(() => this.#makeRoom())
  }

  #makeRoom(): void {
    const wanted = this.#reserve.bytes * 1.5
    const walBytes = this.#checkpointer.walBytes()
    const missing = wanted - this.#reserve.available - walBytes
    if (missing > 0 && !this.#checkpointer.giveBack(missing)) return
    this.#checkpointer.truncate()
    if (this.#reserve.take()) this.#full = false
  }

  close(): void {
    clearTimeout(this.#timer)
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
