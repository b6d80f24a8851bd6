import { messageOf } from '@signalbox/broker-core/internal'
import Database from 'better-sqlite3'
import { closeSync, fdatasyncSync, openSync, statSync } from 'node:fs'

import { PAGE_BYTES } from '../store/schema.ts'
import { isDamage } from '../store/sqlite.ts'

/**
 * The number of WAL pages (16 MiB) at which the WAL is copied back: the value with the smoothest load in measurements.
 */
const CHECKPOINT_PAGES = 2_000

/** The number of pages at which a checkpoint waits for readers that keep the WAL from starting over. */
const RESTART_PAGES = 4 * CHECKPOINT_PAGES

/** The number of commits between two checks of the WAL's length. */
const LOOK_EVERY = 8

/** The idle time after which the WAL is emptied, in ms. */
const IDLE_MS = 500

/** The number of free pages returned to the file system in one idle step, and the number kept for the next messages. */
const VACUUM_PAGES = 1_000
const KEPT_FREE_PAGES = 2_000

/**
 * The number of pages returned at a time on a full disk, so that the WAL hardly grows, and of repetitions per probe.
 */
const PIECE_PAGES = 50
const MAX_PIECES = 40

interface WalState {
  readonly busy: number
  readonly log: number
  readonly checkpointed: number
}

/**
 * Copies the WAL back into the data file. SQLite does that automatically inside a commit, but drops the error of a
 * failed sync there, and a later sync of the same pages would succeed without them. Here the error ends the connection.
 */
export class Checkpointer {
  readonly #database: Database.Database
  readonly #onError: (error: unknown) => void
  readonly #onDamage: (error: unknown) => void
  readonly #walFile: string
  #vacuums = true
  #commits = 0
  #idle: NodeJS.Timeout | undefined

  /** @param onDamage Called once if free pages cannot be returned to the file system */
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
   * Checks the WAL; call it after every group, when its results were sent.
   * @param copyBack The disk is full, so that the WAL must not grow; or the data file needs the contents now
   * @param isScarce Disk space is scarce: the WAL should hardly grow
   */
  afterCommit(copyBack: boolean, isScarce: () => boolean): void {
    if (this.#idle) this.#idle.refresh()
    else this.#idle = setTimeout(() => this.#whenIdle(), IDLE_MS).unref()
    if (copyBack) {
      this.restart()
      return
    }
    if (++this.#commits % LOOK_EVERY !== 0) return
    const { log } = this.#wal('NOOP')
    if (log >= RESTART_PAGES) this.restart()
    else if (log >= CHECKPOINT_PAGES || isScarce()) this.#wal('PASSIVE')
  }

  /** Copies the whole WAL into the data file, synced; the WAL starts over. */
  restart(): void {
    this.#wal('RESTART')
  }

  /** Returns the size of the WAL file, in bytes. */
  walBytes(): number {
    return statSync(this.#walFile, { throwIfNoEntry: false })?.size ?? 0
  }

  /** Copies the whole WAL into the data file, synced, and empties the WAL. */
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

  /**
   * Returns free pages of the data file to the file system. The result is false if there are not enough, or not yet.
   */
  releasePages(bytes: number): boolean {
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

  /** Returns some free pages to the file system. The result is true if there are more. */
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

/**
 * The WAL file, synced after a commit. SQLite can sync it (`synchronous=FULL`), but uses fsync, which also writes the
 * file's times and therefore the file system's journal: a third of a sync's duration.
 *
 * This class opens its own descriptor. That is safe: SQLite locks the data file and the WAL index, never the WAL, so
 * that closing the descriptor releases no lock; and the kernel reports a failed write to each descriptor that was open
 * at that time.
 */
export class WalFile {
  readonly #descriptor: number

  /** Opens the file. SQLite creates it with its first read and keeps it while the store is open. */
  constructor(file: string) {
    this.#descriptor = openSync(file, 'r+')
  }

  /** Syncs the file. @throws SqliteError SQLITE_IOERR_FSYNC, like SQLite's own sync */
  sync(): void {
    try {
      fdatasyncSync(this.#descriptor)
    } catch (error) {
      throw new Database.SqliteError(`the WAL cannot be synced: ${messageOf(error)}`, 'SQLITE_IOERR_FSYNC')
    }
  }

  close(): void {
    closeSync(this.#descriptor)
  }
}
