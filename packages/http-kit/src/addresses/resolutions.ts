import type { LookupAddress } from 'node:dns'

import type { ResolveHost } from './checked-lookup.ts'

/** The system's resolver uses a thread of a pool of four, which file access and other lookups need too. */
const AT_ONCE = 2
/** An unavailable name server must not delay a registration for long. */
const PATIENCE_MS = 3_000

/** Resolves names for registrations, with limits on concurrency and time. */
export class Resolutions {
  readonly #resolve: ResolveHost
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(resolve: ResolveHost) {
    this.#resolve = resolve
  }

  /** Resolves a name to its addresses; to an empty list when it has none, or after 3 s. */
  async of(hostname: string): Promise<readonly LookupAddress[]> {
    let timer: NodeJS.Timeout | undefined
    let overdue = false
    const late = new Promise<readonly LookupAddress[]>((resolve) => {
      timer = setTimeout(() => {
        overdue = true
        resolve([])
      }, PATIENCE_MS)
      timer.unref()
    })
    const found = this.#inTurn(async () => (overdue ? [] : this.#resolve(hostname))).catch(() => [])
    try {
      return await Promise.race([found, late])
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Runs calls with limited concurrency. A call that runs too long keeps its slot, because the resolver
   * cannot be cancelled.
   */
  async #inTurn<T>(call: () => Promise<T>): Promise<T> {
    if (this.#running >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running++
    try {
      return await call()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }
}
