/** The prefix of the accounts of anonymous callers, before the network address. */
export const ANONYMOUS_ACCOUNT = 'address:'

/** The resources in use by one caller: a ClientID, or the network address of anonymous callers. */
export class Account {
  /** `client:{ClientID}` or `address:{network}`. */
  readonly key: string
  readonly anonymous: boolean
  requests = 0
  bodyBytes = 0
  streams = 0
  unreadBytes = 0
  /** `true` after the account was dropped; a new account then counts for its key. */
  forgotten = false
  #tokens = Number.NaN
  #refilledAt = 0

  constructor(key: string, anonymous: boolean) {
    this.key = key
    this.anonymous = anonymous
  }

  /**
   * Returns `true` if the account holds no resource and can be dropped. Its token bucket is full again after two
   * seconds.
   */
  isIdle(now: number): boolean {
    return (
      this.requests === 0 &&
      this.bodyBytes === 0 &&
      this.streams === 0 &&
      this.unreadBytes === 0 &&
      now - this.#refilledAt > 2_000
    )
  }

  /**
   * Takes a token from a bucket that gains `rate` tokens a second and holds twice as many.
   * @returns 0, or the milliseconds until there is a token
   */
  takeToken(rate: number, now: number): number {
    const most = Math.max(1, rate * 2)
    const gained = Number.isNaN(this.#tokens) ? most : this.#tokens + ((now - this.#refilledAt) / 1000) * rate
    this.#tokens = Math.min(most, gained)
    this.#refilledAt = now
    if (this.#tokens < 1) return Math.ceil(((1 - this.#tokens) / rate) * 1000)
    this.#tokens--
    return 0
  }
}
