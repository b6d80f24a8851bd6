import { isFull } from '../store/sqlite-code.ts'
import type { Checkpointer } from './checkpointer.ts'
import type { OperationKind } from './operations.ts'
import type { Reserve } from './reserve.ts'

/** The time for which a commit shows that the disk accepts writes, in ms. */
const PROVEN_MS = 60_000

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
    this.#lastCommit = performance.now()
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
    if (missing > 0 && !this.#checkpointer.giveBack(missing)) return
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
