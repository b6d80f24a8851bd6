import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'

import { encodeText, isBrokerError } from '@signalbox/broker-core'
import type { BrokerHandle } from '@signalbox/broker-core'

import { AUDIT_CHANNEL, auditEntry } from './audit-entry.ts'
import type { AuditEntry, AuditEvent } from './audit-entry.ts'
import { AuthenticationFailures, Denials } from './gathered-events.ts'

export interface AuditLogOptions {
  /** The age after which entries are deleted, in seconds; 0 keeps all. @default 2592000, 30 days */
  readonly maxAgeSeconds?: number
  /** The most bytes of all entries; the oldest are deleted first. 0 means no limit. @default 268435456 */
  readonly maxBytes?: number
  /** The most entries that wait for the store; further ones are dropped and counted. @default 10000 */
  readonly maxBuffered?: number
  /** The name of this node. @default the host's */
  readonly node?: string
  /**
   * The interval for which failed authentications of one address, and denials of one caller, share
   * an entry, in ms. @default 60000
   */
  readonly gatherMs?: number
  /** The time until an entry that the store refused is sent again, in ms. @default 1000 */
  readonly retryMs?: number
  /** Called when an entry was dropped for another reason than a full buffer. For the log. */
  readonly failed?: (error: unknown) => void
}

/** The number of concurrent appends, so that they share a commit of the store. */
const BATCH = 128

interface Waiting {
  readonly entry: AuditEntry
  /** Lets the store recognize a repeated append (C5). */
  readonly id: string
}

/**
 * The audit log: caller, action, target, address and outcome. Recording neither waits nor fails,
 * even if the store is unavailable: entries wait in a bounded buffer. When the buffer is full they
 * are dropped and counted, and a later entry reports the count.
 */
export class AuditLog {
  readonly #maxAgeMs: number
  readonly #maxBuffered: number
  readonly #node: string
  readonly #retryMs: number
  readonly #failed: (error: unknown) => void
  readonly #maxBytes: number
  readonly #failures: AuthenticationFailures
  readonly #denials: Denials
  #waiting: Waiting[] = []
  /** Entries in appends under way. */
  #storing = 0
  #system: BrokerHandle | undefined
  #pumping: Promise<void> | undefined
  #retry: NodeJS.Timeout | undefined
  #created = false
  #closed = false
  #dropped = 0
  /** Drops that no entry has reported yet. */
  #unreportedDrops = 0

  constructor(options: AuditLogOptions = {}) {
    this.#maxAgeMs = (options.maxAgeSeconds ?? 2_592_000) * 1000
    this.#maxBuffered = options.maxBuffered ?? 10_000
    this.#node = options.node ?? hostname()
    this.#retryMs = options.retryMs ?? 1_000
    this.#failed = options.failed ?? (() => {})
    this.#maxBytes = options.maxBytes ?? 268_435_456
    const { gatherMs = 60_000 } = options
    this.#failures = new AuthenticationFailures(gatherMs, (event) => this.#add(event))
    this.#denials = new Denials(gatherMs, (event) => this.#add(event))
  }

  /** The number of entries lost since the start because the store did not accept them in time. */
  get dropped(): number {
    return this.#dropped
  }

  /**
   * Records an event. Never waits and never throws. The first ten denials of an action to a caller
   * within a minute are entries; the others share one.
   */
  record(event: AuditEvent): void {
    if (event.outcome === 'denied' && !this.#closed) this.#denials.add(event)
    else this.#add(event)
  }

  #add(event: AuditEvent): void {
    if (this.#closed || this.#waiting.length >= this.#maxBuffered) {
      this.#drop()
      return
    }
    this.#waiting.push({ entry: auditEntry(event, Date.now(), this.#node), id: randomUUID() })
    this.#pump()
  }

  /**
   * Records that a caller could not be authenticated. One entry counts the failures of an address
   * within a minute.
   * @param listener The listener's name: `management` or `shared`
   */
  authenticationFailed(address: string, listener: string): void {
    if (this.#closed) this.#drop()
    else this.#failures.count(address, listener)
  }

  /**
   * Starts storing entries, including those that already wait. The handle must be the one for
   * reserved channels.
   */
  open(system: BrokerHandle): void {
    this.#system = system
    this.#pump()
  }

  /**
   * Stores the waiting entries, for at most `graceMs`. Later entries are dropped. Idempotent.
   * @default graceMs 2000
   */
  async close(graceMs = 2_000): Promise<void> {
    this.#failures.close()
    this.#denials.close()
    this.#closed = true
    clearTimeout(this.#retry)
    this.#retry = undefined
    if (this.#system === undefined) return
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs)
    })
    this.#pump()
    await Promise.race([this.#pumping, late])
    clearTimeout(timer)
    this.#system = undefined
    this.#giveUp(this.#waiting.length + this.#storing)
    this.#waiting = []
  }

  /** Counts and reports entries that will not be sent again. */
  #giveUp(entries: number): void {
    if (entries === 0) return
    this.#dropped += entries
    this.#failed(new Error(`${entries} entries lost: the store did not accept them before the shutdown`))
  }

  #drop(): void {
    this.#dropped++
    this.#unreportedDrops++
  }

  #pump(): void {
    if (this.#pumping !== undefined || this.#system === undefined || this.#retry !== undefined) return
    if (this.#waiting.length === 0) return
    this.#pumping = this.#store().finally(() => {
      this.#pumping = undefined
      this.#pump()
    })
  }

  async #store(): Promise<void> {
    // Wait a tick: entries of one event-loop tick go in one batch.
    await Promise.resolve()
    while (this.#waiting.length > 0 && this.#system !== undefined && this.#retry === undefined) {
      const batch = this.#waiting.splice(0, BATCH)
      const system = this.#system
      this.#storing = batch.length
      await this.#createChannel(system)
      const refused = await Promise.all(batch.map((waiting) => this.#append(system, waiting)))
      this.#storing = 0
      const again = batch.filter((_, i) => refused[i])
      if (again.length > 0) this.#tryLater(again)
      else if (this.#unreportedDrops > 0) this.#reportDropped()
    }
  }

  /**
   * Creates the channel with its retention, at the first entry: a server without events writes
   * nothing.
   */
  async #createChannel(system: BrokerHandle): Promise<void> {
    if (this.#created) return
    try {
      await system.channels.create('events_store', AUDIT_CHANNEL, {
        maxAgeMs: this.#maxAgeMs,
        maxBytes: this.#maxBytes,
      })
      this.#created = true
    } catch (error) {
      // The append that follows fails in the same way, and is repeated.
      if (!isBrokerError(error, 'ENGINE_UNAVAILABLE')) this.#failed(error)
    }
  }

  /** Returns true if the entry should be sent again. */
  async #append(system: BrokerHandle, { entry, id }: Waiting): Promise<boolean> {
    try {
      const body = encodeText(JSON.stringify(entry))
      await system.eventsStore.publish(AUDIT_CHANNEL, { body, tags: { message_id: id } })
      return false
    } catch (error) {
      if (isBrokerError(error, 'ENGINE_UNAVAILABLE')) return true
      this.#drop()
      this.#failed(error)
      return false
    }
  }

  #tryLater(again: readonly Waiting[]): void {
    // `close` has stopped waiting and has already reported these entries.
    if (this.#system === undefined) return
    if (this.#closed) {
      this.#giveUp(again.length + this.#waiting.length)
      this.#waiting = []
      return
    }
    this.#waiting = [...again, ...this.#waiting]
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.#pump()
    }, this.#retryMs).unref()
  }

  #reportDropped(): void {
    const count = this.#unreportedDrops
    this.#unreportedDrops = 0
    this.#waiting.push({
      entry: auditEntry({ client: '', action: 'audit_dropped', outcome: 'failure', count }, Date.now(), this.#node),
      id: randomUUID(),
    })
  }
}
