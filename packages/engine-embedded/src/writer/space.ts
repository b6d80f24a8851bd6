import { isFull } from '../store/sqlite-code.ts'
import type { Checkpointer } from './checkpointer.ts'
import type { OperationKind } from './operations.ts'
import type { Reserve } from './reserve.ts'

/** How long after the store was opened room is set aside, and how often it is tried again. */
const FIRST_MS = 1_000
const AGAIN_MS = 60_000

/** What takes room for good. The others remove something, or take a little of the WAL that a checkpoint gives back. */
const GROWS: ReadonlySet<OperationKind> = new Set(['send', 'append', 'createChannel', 'probe'])

/**
 * What the writer does about a full disk: gives the reserve back, takes only what removes messages, and copies the WAL
 * back after each commit, so that removals find room in it. It ends when there is room for the reserve again.
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

  /** A commit or a checkpoint found no room. False when that is known already: there is nothing more to give. */
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

  /** To be called after every group that wrote. */
  afterCommit(): void {
    try {
      this.#checkpointer.afterCommit(this.#full, () => this.#isScarce())
    } catch (error) {
      if (!isFull(error)) throw error
      // Now, while what the WAL holds still fits in the room of the reserve: commits would go on until nothing fits.
      this.met()
    }
  }

  /** Whether a checkpoint could soon find no room for what is in the WAL. */
  #isScarce(): boolean {
    return this.#reserve.available < 8 * this.#reserve.bytes + 2 * this.#checkpointer.walBytes()
  }

  /** Whether there is room again; gives free pages of the data file back for it. */
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

/** On a full disk the data file cannot grow; the WAL keeps everything meanwhile. */
function ignoringFull(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (!isFull(error)) throw error
  }
}
