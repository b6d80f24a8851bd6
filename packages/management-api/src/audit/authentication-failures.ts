import type { AuditEvent } from './audit-entry.ts'

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
