import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'

import { encodeText, isBrokerError } from '@signalbox/broker-core'
import type { BrokerHandle } from '@signalbox/broker-core'

import type { AuditEntry, AuditEvent } from './audit-entry.ts'
import { AUDIT_CHANNEL, auditEntry } from './audit-entry.ts'
import { AuthenticationFailures } from './authentication-failures.ts'
import { Denials } from './denials.ts'

export interface AuditLogOptions {
  /** Entries older than this go, in seconds; 0 keeps all. @default 2592000, 30 days */
  readonly maxAgeSeconds?: number
  /** The most bytes of all entries: the oldest go first. 0 is no limit. @default 268435456 */
  readonly maxBytes?: number
  /** Entries that may wait for the store; further ones are dropped and counted. @default 10000 */
  readonly maxBuffered?: number
  /** The name of this node. @default the host's */
  readonly node?: string
  /** How long failed authentications of one address, and denials of one caller, are gathered, in milliseconds. @default 60000 */
  readonly gatherMs?: number
  /** How long after the store refused an entry it is tried again, in milliseconds. @default 1000 */
  readonly retryMs?: number
  /** For the log: an entry was dropped for another reason than a full buffer. */
  readonly failed?: (error: unknown) => void
}

/** Appends under way together share a commit of the store. */
const BATCH = 128

interface Waiting {
  readonly entry: AuditEntry
  /** Makes a repeated append store it once (C5). */
  readonly id: string
}

/**
 * The audit log: who did what, on what, from where, and how it ended. Recording neither waits nor fails, whatever the
 * store does: entries wait in a bounded buffer, and when it is full they are dropped and counted, and the log says so.
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
  /** Entries that the store was given and has not answered for. */
  #storing = 0
  #system: BrokerHandle | undefined
  #pumping: Promise<void> | undefined
  #retry: NodeJS.Timeout | undefined
  #created = false
  #closed = false
  #dropped = 0
  /** Dropped since the log last said so. */
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

  /** Entries lost since the start because the store did not take them in time. */
  get dropped(): number {
    return this.#dropped
  }

  /** Never waits and never throws. Of the denials of an action to a caller within a minute, all but the first ten are one entry. */
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
   * A caller could not be authenticated. One entry stands for all failures of an address within a minute.
   * @param listener Where: `management` or `shared`
   */
  authenticationFailed(address: string, listener: string): void {
    if (this.#closed) this.#drop()
    else this.#failures.count(address, listener)
  }

  /** Begins to store what was recorded so far and what comes. The handle must be the broker's own. */
  open(system: BrokerHandle): void {
    this.#system = system
    this.#pump()
  }

  /** Stores what waits, for at most `graceMs`; later entries are dropped. Idempotent. @default graceMs 2000 */
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

  /** Nobody tries these again: all that can be done is to say so. */
  #giveUp(entries: number): void {
    if (entries === 0) return
    this.#dropped += entries
    this.#failed(new Error(`the store did not take ${entries} entries before the end`))
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
    // What is recorded in this turn goes in one batch.
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

  /** With its retention, at the first entry: a server on which nothing happens writes nothing. */
  async #createChannel(system: BrokerHandle): Promise<void> {
    if (this.#created) return
    try {
      await system.channels.create('events_store', AUDIT_CHANNEL, {
        maxAgeMs: this.#maxAgeMs,
        maxBytes: this.#maxBytes,
      })
      this.#created = true
    } catch (error) {
      // The append after it meets the same trouble, and is tried again.
      if (!isBrokerError(error, 'ENGINE_UNAVAILABLE')) this.#failed(error)
    }
  }

  /** Resolves with true when the entry should be tried again. */
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
    // Nobody waited for the answer any more.
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
