import type { BrokerError, SettingsEntry, StoredType } from '@signalbox/broker-core/engine'
import { unavailable } from '@signalbox/broker-core/engine'
import { messageOf } from '@signalbox/broker-core/internal'
import type Database from 'better-sqlite3'
import { stat } from 'node:fs/promises'

import type { Retries, Settings } from '../options.ts'
import type { ActivityOperation, OperationKind, OperationOf, ResultOf } from '../writer/operations.ts'
import { Reserve } from '../writer/space.ts'
import type { GroupReply, WriterSettings } from '../writer/thread-messages.ts'
import { Writer } from '../writer/writer.ts'
import type { DamagedChannel, DamagedPlace } from './damage.ts'
import { Damage, damageReason } from './damage.ts'
import type { StoreFiles } from './files.ts'
import { storeFiles } from './files.ts'
import type { StoreLock } from './prepare-store.ts'
import { prepareStore } from './prepare-store.ts'
import { isDamage, isHopeless, openReadConnection, sqliteCode } from './sqlite.ts'

/**
 * The intervals of probes for disk space, in ms: in general, and on a full disk. The first probe creates the reserve
 * and comes after a second, when the start is over.
 */
const PROBE_MS = 5_000
const SOON_MS = 1_000

export const RETRIES: Retries = { firstMs: 100, lastMs: 5_000, limit: 10, steadyMs: 60_000 }

const STAYS_CLOSED =
  'the store stays closed. Check the disk and start the server again; if the store is damaged, run "signalbox recover" to copy the readable messages'

interface StoreEvents {
  /** Handles a durable group. Called before the operations' own results are applied. */
  group(reply: GroupReply): void
  activity(): ActivityOperation | undefined
  /** Returns the channels that share a part of the store. */
  sharing(part: string): readonly DamagedChannel[]
  /** Called after the store was closed and read again: memory may differ from the disk. */
  reopened(): void
}

/**
 * The open files of an engine: the lock, the writer thread, and the reader on the main thread. After a disk failure it
 * closes everything, and reopens and reads the store until that succeeds; calls fail meanwhile. A store that fails
 * repeatedly, or is damaged as a whole, stays closed. Damage of single pages does not close the store: it is recorded,
 * and affects the channels with rows there.
 */
export class Store {
  readonly #settings: Settings
  readonly #files: StoreFiles
  readonly #lock: StoreLock
  readonly #faults: Int32Array | undefined
  readonly #retries: Retries
  /** The known damage. */
  readonly damage: Damage
  #events: StoreEvents | undefined
  #writer: Writer
  #reader: Database.Database | undefined
  #full = false
  #failure: string | undefined
  /** `true` if the store is not opened again. */
  #givenUp = false
  #failures = 0
  #openedAt = 0
  #closing: Promise<void> | undefined
  #retry: NodeJS.Timeout | undefined
  #wake: (() => void) | undefined
  #probe: NodeJS.Timeout | undefined
  #channelSettings: readonly SettingsEntry[] = []
  #reopening: Promise<void> | undefined

  /** Opens the files. @throws EmbeddedEngineError STORE_* */
  static async open(settings: Settings, faults: Int32Array | undefined, retries = RETRIES): Promise<Store> {
    const files = storeFiles(settings.path)
    const lock = prepareStore(files)
    const store = new Store(settings, files, lock, faults, retries)
    try {
      await store.#connect()
      return store
    } catch (error) {
      await store.close()
      throw error
    }
  }

  constructor(
    settings: Settings,
    files: StoreFiles,
    lock: StoreLock,
    faults: Int32Array | undefined,
    retries: Retries,
  ) {
    this.#settings = settings
    this.#files = files
    this.#lock = lock
    this.#faults = faults
    this.#retries = retries
    this.damage = new Damage(settings.onProblem)
    this.#writer = this.#startWriter(false)
  }

  /** Sets the receiver of events; call it before the first operation. */
  listen(events: StoreEvents): void {
    this.#events = events
    this.#probeAfter(SOON_MS)
  }

  /** Probes without waiting for a send: health must be right before the first one fails. */
  #probeAfter(ms: number): void {
    clearTimeout(this.#probe)
    this.#probe = setTimeout(() => {
      this.#writer
        .submit('probe', { kind: 'probe' }, 0, () => {})
        .catch(() => {})
        .then(() => this.#closing ?? this.#probeAfter(this.#full ? SOON_MS : PROBE_MS))
        .catch(() => {})
    }, ms).unref()
  }

  #startWriter(recover: boolean): Writer {
    const { queueMaxMessages, queueMaxBytes, eventsStoreMaxAgeMs, eventsStoreMaxBytes } = this.#settings
    const { durableGroupMs, maxDurableGroups } = this.#settings
    const settings: WriterSettings = {
      file: this.#files.data,
      wal: this.#files.wal,
      reserve: this.#files.reserve,
      queueMaxMessages,
      queueMaxBytes,
      eventsStoreMaxAgeMs,
      eventsStoreMaxBytes,
      durableGroupMs,
      maxDurableGroups,
      channelSettings: this.#channelSettings,
      recover,
      faults: this.#faults,
    }
    return new Writer(settings, {
      group: (reply) => this.#events?.group(reply),
      activity: () => this.#events?.activity(),
      committed: (commit) => this.#settings.onCommit(commit),
      full: (full) => this.#setFull(full),
      damaged: (place, reason) => this.#damaged(place, reason),
      // A thread can fail as soon as it is ready. The next tick of the event loop begins after what `ready` resolved.
      failed: (reason, code) => void setImmediate(() => this.#failed(reason, code)),
    })
  }

  async #connect(): Promise<void> {
    await this.#writer.ready
    this.#reader = openReadConnection(this.#files.data)
    this.#openedAt = performance.now()
  }

  /** The read connection. Run each statement to its end immediately; never keep one open across an await. */
  get reader(): Database.Database {
    if (!this.#reader) throw unavailable(this.#failure ?? 'it is closed')
    return this.#reader
  }

  /** Returns a function that returns statements of the read connection. A reopened store prepares them again. */
  statements<Statements>(prepare: (reader: Database.Database) => Statements): () => Statements {
    let prepared: { readonly reader: Database.Database; readonly statements: Statements } | undefined
    return () => {
      const { reader } = this
      if (prepared?.reader !== reader) prepared = { reader, statements: prepare(reader) }
      return prepared.statements
    }
  }

  /** Runs a read of a channel's rows. @throws BrokerError ENGINE_UNAVAILABLE for errors of SQLite */
  reading<T>(type: StoredType, name: string, read: () => T): T {
    return this.#reading({ channel: { type, name } }, read)
  }

  /** Runs a read of data that channels share. @throws BrokerError ENGINE_UNAVAILABLE for errors of SQLite */
  readingPart<T>(part: string, read: () => T): T {
    return this.#reading({ part }, read)
  }

  #reading<T>(place: DamagedPlace, read: () => T): T {
    try {
      return read()
    } catch (error) {
      const code = sqliteCode(error)
      if (isDamage(error) || isHopeless(code)) throw this.#damaged(place, damageReason(error))
      if (code === '') throw error
      throw unavailable(`the store cannot be read: ${messageOf(error)}`, { cause: error })
    }
  }

  #damaged(place: DamagedPlace, reason: string): BrokerError {
    const channels = 'part' in place ? this.#events?.sharing(place.part) : undefined
    return this.damage.note(place, reason, channels)
  }

  /** Submits an operation, like {@link Writer.submit}. */
  submit<K extends OperationKind, T>(
    kind: K,
    operation: OperationOf<K>,
    bytes: number,
    apply: (result: ResultOf<K>) => T,
  ): Promise<T> {
    if (this.#givenUp) return Promise.reject(unavailable(this.#failure ?? STAYS_CLOSED))
    return this.#writer.submit(kind, operation, bytes, apply)
  }

  /** Lets the writer apply the settings to every operation that is submitted later. */
  useSettings(entries: readonly SettingsEntry[]): void {
    // Without the members that the writer does not need, such as large schemas. A null ends a search.
    this.#channelSettings = entries.flatMap(({ type, match, source, retry, retention, deduplication }) =>
      [retry, retention, deduplication].every((member) => member === undefined)
        ? []
        : [{ type, match, source, retry, retention, deduplication }],
    )
    const operation = { kind: 'useSettings', entries: this.#channelSettings } as const
    // If the store fails, its next writer starts with them.
    this.submit('useSettings', operation, 0, () => {}).catch(() => {})
  }

  get problem(): { readonly store: string | undefined; readonly writes: string | undefined } {
    return {
      store: this.#failure ?? this.damage.detail,
      writes:
        this.#failure ??
        (this.#full ? `the disk is full; messages are accepted when ${this.#needed} are free` : undefined),
    }
  }

  /** Returns the bytes on disk: the data file and the part of the WAL that is not yet copied back. */
  async size(): Promise<number> {
    const sizes = await Promise.all(
      [this.#files.data, this.#files.wal].map((file) =>
        stat(file).then(
          ({ size }) => size,
          () => 0,
        ),
      ),
    )
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  #setFull(full: boolean): void {
    if (full === this.#full) return
    this.#full = full
    if (full) {
      this.#settings.onProblem({
        kind: 'full',
        message: `the disk is full: ${this.#files.folder} accepts no more messages until ${this.#needed} are free; stored messages can be received and removed`,
      })
      if (this.#events) this.#probeAfter(SOON_MS)
    } else {
      this.#settings.onProblem({
        kind: 'healed',
        message: 'the disk accepts messages again, and the store has its reserve again',
      })
    }
  }

  /** Returns the free space that ends the state of a full disk, for messages. */
  get #needed(): string {
    return `${Math.ceil((new Reserve(this.#files.reserve).needed / 1024 / 1024) * 10) / 10} MiB`
  }

  #failed(reason: string, code: string): void {
    if (this.#closing || !this.#reader) return
    const { limit, steadyMs } = this.#retries
    this.#failures = performance.now() - this.#openedAt < steadyMs ? this.#failures + 1 : 1
    if (this.#failures > limit || isHopeless(code)) {
      this.#giveUp(reason)
      return
    }
    this.#failure = `the store failed and is being opened again: ${reason}`
    this.#settings.onProblem({ kind: 'failed', message: this.#failure })
    this.#reopening ??= this.#reopen().finally(() => (this.#reopening = undefined))
  }

  #giveUp(reason: string): void {
    this.#givenUp = true
    this.#failure = `the store failed: ${reason}; ${STAYS_CLOSED}`
    this.#settings.onProblem({ kind: 'failed', message: this.#failure })
    // The reader is closed last; see below.
    this.#writer.ended.then(() => this.#closeReader()).catch(() => {})
  }

  /**
   * Closes the old connections first, and the reader last: a reader cannot copy the WAL back, which would sync pages
   * whose sync has failed. The new writer copies the whole WAL into the data file before anything else (`recover`).
   */
  async #reopen(): Promise<void> {
    const { firstMs, lastMs } = this.#retries
    await this.#writer.ended
    this.#closeReader()
    for (let delay = firstMs * 2 ** (this.#failures - 1); !this.#closing; delay *= 2) {
      await this.#pause(Math.min(delay, lastMs))
      if (this.#closing) return
      this.#writer = this.#startWriter(true)
      try {
        await this.#connect()
        this.#events?.reopened()
        this.#failure = undefined
        this.#settings.onProblem({ kind: 'healed', message: 'the store is open again' })
        return
      } catch (error) {
        this.#closeReader()
        await this.#writer.close()
        const code = this.#writer.failure || sqliteCode(error)
        if (isHopeless(code)) {
          this.#giveUp(messageOf(error))
          return
        }
        this.#failure = `the store failed and cannot be opened yet: ${messageOf(error)}`
      }
    }
  }

  #closeReader(): void {
    this.#reader?.close()
    this.#reader = undefined
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
      this.#retry = setTimeout(resolve, ms).unref()
    })
  }

  /** Completes submitted operations, copies the WAL back, closes the files, and releases the lock. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#shutDown()
    return this.#closing
  }

  async #shutDown(): Promise<void> {
    clearTimeout(this.#probe)
    clearTimeout(this.#retry)
    this.#wake?.()
    await this.#reopening
    await this.#writer.close()
    this.#closeReader()
    this.#lock.release()
  }
}
