import type Database from 'better-sqlite3'

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
  #vacuums = true
  #commits = 0
  #idle: NodeJS.Timeout | undefined

  /** `onDamage`: free pages cannot be given back; told once. */
  constructor(database: Database.Database, onError: (error: unknown) => void, onDamage: (error: unknown) => void) {
    this.#database = database
    this.#onError = onError
    this.#onDamage = onDamage
  }

  /** To be called after every group, when its results are on their way. */
  afterCommit(): void {
    if (this.#idle) this.#idle.refresh()
    else this.#idle = setTimeout(() => this.#whenIdle(), IDLE_MS).unref()
    if (++this.#commits % LOOK_EVERY !== 0) return
    const { log } = this.#wal('NOOP')
    if (log >= RESTART_PAGES) this.#wal('RESTART')
    else if (log >= CHECKPOINT_PAGES) this.#wal('PASSIVE')
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

  /** Gives some free pages back; true when there are more. */
  #vacuum(): boolean {
    try {
      const free = Number(this.#database.pragma('freelist_count', { simple: true }))
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
