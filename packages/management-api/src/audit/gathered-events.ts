import type { AuditEvent } from './audit-entry.ts'

/**
 * The most pairs of caller and action within the interval; further denials share one entry. The
 * limit bounds the memory that attackers can use.
 */
const MAX_KINDS = 1_000

/**
 * The number of denials of an action to a caller with separate entries. They show an operator the
 * attempts of a broken client.
 */
const FIRST = 10

/** Denials of one action to one caller. */
interface Kind {
  /** The number of denials with separate entries. */
  recorded: number
  /** The common fields of the other denials. */
  event: AuditEvent
  further: number
}

/**
 * Limits the entries of denials. The first ten denials of an action to a caller are recorded at
 * once; further ones within the interval share one entry with a count.
 */
export class Denials {
  readonly #gatherMs: number
  readonly #record: (event: AuditEvent) => void
  readonly #kinds = new Map<string, Kind>()
  #others = 0
  #timer: NodeJS.Timeout | undefined

  constructor(gatherMs: number, record: (event: AuditEvent) => void) {
    this.#gatherMs = gatherMs
    this.#record = record
  }

  add(event: AuditEvent): void {
    this.#timer ??= setTimeout(() => this.#flush(), this.#gatherMs).unref()
    const { client, address = '', action, code = '' } = event
    const key = JSON.stringify([client, address, action, code])
    const kind = this.#kinds.get(key)
    if (kind === undefined) {
      if (this.#kinds.size >= MAX_KINDS) {
        this.#others++
        return
      }
      this.#kinds.set(key, { recorded: 1, event, further: 0 })
      this.#record(event)
    } else if (kind.recorded < FIRST) {
      kind.recorded++
      this.#record(event)
    } else {
      kind.event = kind.further === 0 ? event : common(kind.event, event)
      kind.further++
    }
  }

  /** Records the grouped denials. Idempotent. */
  close(): void {
    clearTimeout(this.#timer)
    this.#flush()
  }

  #flush(): void {
    this.#timer = undefined
    for (const { event, further: count } of this.#kinds.values()) {
      if (count > 0) this.#record({ ...event, count, detail: 'further denials' })
    }
    this.#kinds.clear()
    if (this.#others > 0) {
      const event = { client: '', action: 'denied', outcome: 'denied', detail: 'denials of further callers' } as const
      this.#record({ ...event, count: this.#others })
    }
    this.#others = 0
  }
}

/** Returns the fields that two denials have in common. */
function common(one: AuditEvent, { type, channel, agent }: AuditEvent): AuditEvent {
  if (one.type === type && one.channel === channel && one.agent === agent) return one
  const { client, action, outcome, address, code } = one
  return { client, action, outcome, type: one.type === type ? type : undefined, address, code }
}

/**
 * The most addresses with their own entry within the interval. The limit bounds the memory that
 * attackers can use.
 */
const MAX_ADDRESSES = 1_000

interface Failures {
  readonly address: string
  readonly listener: string
  count: number
}

/** Groups failed authentications into one entry for each address and listener, with a count. */
export class AuthenticationFailures {
  readonly #gatherMs: number
  readonly #record: (event: AuditEvent) => void
  readonly #gathered = new Map<string, Failures>()
  #timer: NodeJS.Timeout | undefined

  constructor(gatherMs: number, record: (event: AuditEvent) => void) {
    this.#gatherMs = gatherMs
    this.#record = record
  }

  count(address: string, listener: string): void {
    const from = this.#gathered.size < MAX_ADDRESSES ? address : 'others'
    const known = this.#gathered.get(`${listener} ${address}`) ?? this.#gathered.get(`${listener} ${from}`)
    if (known) known.count++
    else this.#gathered.set(`${listener} ${from}`, { address: from, listener, count: 1 })
    this.#timer ??= setTimeout(() => this.#flush(), this.#gatherMs).unref()
  }

  /** Records the grouped failures. Idempotent. */
  close(): void {
    clearTimeout(this.#timer)
    this.#flush()
  }

  #flush(): void {
    this.#timer = undefined
    for (const { address, listener, count } of this.#gathered.values()) {
      this.#record({
        client: '',
        action: 'authentication_failed',
        outcome: 'denied',
        address,
        detail: `on ${listener}`,
        count,
      })
    }
    this.#gathered.clear()
  }
}
