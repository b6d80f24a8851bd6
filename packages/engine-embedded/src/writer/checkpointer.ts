import type Database from 'better-sqlite3'
import { statSync } from 'node:fs'

import { PAGE_BYTES } from '../store/schema.ts'
import { isDamage } from '../store/sqlite-code.ts'

/** Pages in the WAL (16 MiB) at which it is copied back: the smoothest of the values measured under load. */
const CHECKPOINT_PAGES = 2_000

/** When readers kept the WAL from starting over for this long, wait for them. */
const RESTART_PAGES = 4 * CHECKPOINT_PAGES

/** Commits between two looks at the WAL's length. */
const LOOK_EVERY = 8

/** Nothing to do for this long: empty the WAL. */
const IDLE_MS = 500

/** Free pages given back to the file system in one idle step, and how many are kept for the next messages. */
const VACUUM_PAGES = 1_000
const KEPT_FREE_PAGES = 2_000

/** Pages given back at a time on a full disk, so that the WAL hardly grows; and how many times for one probe. */
const PIECE_PAGES = 50
const MAX_PIECES = 40

interface WalState {
  readonly busy: number
  readonly log: number
  readonly checkpointed: number
}

/**
 * Copies the WAL back into the data file. SQLite would do it by itself inside a commit, but drops the error of a failed
 * sync there, and syncing the same pages again later would succeed without them; here the error ends the connection.
 */
export class Checkpointer {
  readonly #database: Database.Database
  readonly #onError: (error: unknown) => void
  readonly #onDamage: (error: unknown) => void
  readonly #walFile: string
  #vacuums = true
  #commits = 0
  #idle: NodeJS.Timeout | undefined

  /** `onDamage`: free pages cannot be given back; told once. */
  constructor(
    database: Database.Database,
    walFile: string,
    onError: (error: unknown) => void,
    onDamage: (error: unknown) => void,
  ) {
    this.#database = database
    this.#walFile = walFile
    this.#onError = onError
    this.#onDamage = onDamage
  }

  /**
   * To be called after every group, when its results are on their way. `full`: the WAL must not grow. `isScarce`: neither
   * should it, much.
   */
  afterCommit(full: boolean, isScarce: () => boolean): void {
    if (this.#idle) this.#idle.refresh()
    else this.#idle = setTimeout(() => this.#whenIdle(), IDLE_MS).unref()
    if (full) {
      this.restart()
      return
    }
    if (++this.#commits % LOOK_EVERY !== 0) return
    const { log } = this.#wal('NOOP')
    if (log >= RESTART_PAGES) this.restart()
    else if (log >= CHECKPOINT_PAGES || isScarce()) this.#wal('PASSIVE')
  }

  /** Everything into the data file, synced; the WAL starts over. */
  restart(): void {
    this.#wal('RESTART')
  }

  /** Bytes of the WAL as a file. */
  walBytes(): number {
    return statSync(this.#walFile, { throwIfNoEntry: false })?.size ?? 0
  }

  /** Everything into the data file, synced, and an empty WAL. */
  truncate(): void {
    this.#wal('TRUNCATE')
  }

  close(): void {
    clearTimeout(this.#idle)
  }

  #whenIdle(): void {
    try {
      const more = this.#vacuums && this.#vacuum()
      this.truncate()
      if (more) this.#idle?.refresh()
    } catch (error) {
      this.#onError(error)
    }
  }

  /** Gives free pages of the data file back to the file system; false when there are not enough, or not yet. */
  giveBack(bytes: number): boolean {
    let left = Math.ceil(bytes / PAGE_BYTES)
    if (!this.#vacuums || left > this.#freePages) return false
    for (let piece = 0; piece < MAX_PIECES && left > 0; piece++) {
      this.#database.pragma(`incremental_vacuum(${PIECE_PAGES})`)
      this.restart()
      left -= PIECE_PAGES
    }
    return left <= 0
  }

  get #freePages(): number {
    return Number(this.#database.pragma('freelist_count', { simple: true }))
  }

  /** Gives some free pages back; true when there are more. */
  #vacuum(): boolean {
    try {
      const free = this.#freePages
      if (free <= KEPT_FREE_PAGES) return false
      this.#database.pragma(`incremental_vacuum(${Math.min(VACUUM_PAGES, free - KEPT_FREE_PAGES)})`)
      return true
    } catch (error) {
      if (!isDamage(error)) throw error
      this.#vacuums = false
      this.#onDamage(error)
      return false
    }
  }

  #wal(mode: 'NOOP' | 'PASSIVE' | 'RESTART' | 'TRUNCATE'): WalState {
    return (
      this.#database.prepare<[], WalState>(`PRAGMA wal_checkpoint(${mode})`).get() ?? {
        busy: 1,
        log: 0,
        checkpointed: 0,
      }
    )
  }
}
