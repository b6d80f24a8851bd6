import type { Identity } from '../authenticator.ts'

/** Time that a verification is cached, in ms. */
const MAX_AGE_MS = 300_000

const DEFAULT_LIMIT = 10_000

interface Verified {
  readonly identity: Identity
  /** Milliseconds since the epoch. */
  readonly until: number
}

/** Recently verified tokens, by their hash. The tokens are not stored. */
export class VerifiedTokens {
  readonly #limit: number
  /** Entries in the order of verification. */
  readonly #tokens = new Map<string, Verified>()

  /** @param limit The most tokens that are cached; the oldest is dropped for a new one */
  constructor(limit = DEFAULT_LIMIT) {
    this.#limit = limit
  }

  get size(): number {
    return this.#tokens.size
  }

  get(hash: string): Identity | undefined {
    const verified = this.#tokens.get(hash)
    if (verified === undefined) return undefined
    if (Date.now() < verified.until) return verified.identity
    this.#tokens.delete(hash)
    return undefined
  }

  add(hash: string, identity: Identity): void {
    const { expiresAt = 0 } = identity
    this.#tokens.delete(hash)
    this.#tokens.set(hash, { identity, until: Math.min(expiresAt, Date.now() + MAX_AGE_MS) })
    if (this.#tokens.size <= this.#limit) return
    const [oldest] = this.#tokens.keys()
    if (oldest !== undefined) this.#tokens.delete(oldest)
  }

  clear(): void {
    this.#tokens.clear()
  }
}
