import { DEFAULT_LIMITS, effectiveLimits, usedShare } from './limits.ts'
import type { AccountLimits, AdmissionLimits, EffectiveLimits, LimitName } from './limits.ts'
import { Refusal } from './refusal.ts'

/** A refusal of a caller by a limit. */
export interface LimitEvent {
  readonly limit: LimitName
  /** The caller's key: `client:{ClientID}` or `address:{network}`. */
  readonly account: string
}

/** Options of {@link AdmissionControl}. */
export interface AdmissionOptions {
  readonly limits?: {
    readonly caller?: Partial<AdmissionLimits['caller']>
    readonly process?: Partial<AdmissionLimits['process']>
  }
  /** Called for each refusal by a limit. Must be quick; its errors are dropped. */
  readonly onLimit?: (event: LimitEvent) => void
  /**
   * Measures the share of memory in use, from 0 to 1.
   * @default the larger of V8's heap in its limit, and the resident memory in that of the container or machine
   */
  readonly measureMemory?: () => number
}

/** The resources in use, for metrics. */
export interface AdmissionUse {
  readonly requests: number
  readonly bodyBytes: number
  readonly streams: number
  readonly unreadBytes: number
  readonly memoryExceeded: boolean
}

/** Bodies up to this size are accepted above the memory watermark too, in bytes: acknowledgments and control calls. */
const SMALL_BODY_BYTES = 65_536

/** Number of new accounts after which idle accounts are dropped. */
const SWEEP_STEP = 1_024

/**
 * Counts the resources that callers use, and refuses requests over the limits. One instance serves all listeners of a
 * process. It is independent of HTTP.
 */
export class AdmissionControl {
  readonly #accounts = new Map<string, Account>()
  readonly #watermark: MemoryWatermark
  readonly #onLimit: (event: LimitEvent) => void
  #limits: EffectiveLimits
  #sweepAt = SWEEP_STEP
  #requests = 0
  #bodyBytes = 0
  #streams = 0
  #unreadBytes = 0

  /** @throws RangeError for a limit that is not a number of at least 0 */
  constructor({ limits = {}, onLimit, measureMemory }: AdmissionOptions = {}) {
    this.#limits = effectiveLimits(withDefaults(limits))
    this.#watermark = new MemoryWatermark(this.#limits.process.memoryPercent, measureMemory)
    this.#onLimit = (event) => {
      try {
        onLimit?.(event)
      } catch {}
    }
  }

  /**
   * Replaces the limits. Resources in use are kept.
   * @throws RangeError for a limit that is not a number of at least 0
   */
  setLimits(limits: AdmissionLimits): void {
    this.#limits = effectiveLimits(limits)
    this.#watermark.percent = this.#limits.process.memoryPercent
  }

  /** The enforced limits. */
  get limits(): EffectiveLimits {
    return this.#limits
  }

  get use(): AdmissionUse {
    return {
      requests: this.#requests,
      bodyBytes: this.#bodyBytes,
      streams: this.#streams,
      unreadBytes: this.#unreadBytes,
      memoryExceeded: this.#watermark.exceeded,
    }
  }

  /** Returns the account of a caller. */
  account(key: string, anonymous: boolean): Account {
    const known = this.#accounts.get(key)
    if (known !== undefined) return known
    if (this.#accounts.size >= this.#sweepAt) this.#sweep()
    const account = new Account(key, anonymous)
    this.#accounts.set(key, account)
    return account
  }

  /** Returns the account of a key, as other nodes name it. */
  accountOf(key: string): Account {
    return this.account(key, key.startsWith(ANONYMOUS_ACCOUNT))
  }

  /** Counts a request until {@link leave}. Returns the refusal if a limit is reached. */
  enter(account: Account): Refusal | undefined {
    const { process } = this.#limits
    const { requestsPerSecond: rate, requestsInFlight: most } = this.#limitsOf(account)
    if (rate > 0) {
      const waitMs = account.takeToken(rate, performance.now())
      if (waitMs > 0) return this.#refuse('caller_rate', account, rate, Math.ceil(waitMs / 1000))
    }
    if (most > 0 && account.requests >= most) return this.#refuse('caller_requests', account, most)
    if (process.requestsInFlight > 0 && this.#requests >= process.requestsInFlight) {
      return this.#refuse('process_requests', account, process.requestsInFlight)
    }
    account.requests++
    this.#requests++
    return undefined
  }

  leave(account: Account): void {
    account.requests--
    this.#requests--
  }

  /**
   * Counts bytes that a caller causes the process to hold, until {@link discharge}: of request bodies, of replies, and
   * of answers that are being built. Returns the refusal if a limit is reached.
   */
  charge(account: Account, bytes: number): Refusal | undefined {
    const { process } = this.#limits
    const { bodyBytes: most } = this.#limitsOf(account)
    if (most > 0 && account.bodyBytes + bytes > most) return this.#refuse('caller_body_bytes', account, most)
    if (process.bodyBytes > 0 && this.#bodyBytes + bytes > process.bodyBytes) {
      return this.#refuse('process_body_bytes', account, process.bodyBytes)
    }
    account.bodyBytes += bytes
    this.#bodyBytes += bytes
    return undefined
  }

  discharge(account: Account, bytes: number): void {
    account.bodyBytes -= bytes
    this.#bodyBytes -= bytes
  }

  /** Returns the refusal of a body of this size if memory is short. */
  refusesBody(account: Account, bytes: number): Refusal | undefined {
    return bytes > SMALL_BODY_BYTES && this.#watermark.exceeded ? this.#refuse('memory', account, 0) : undefined
  }

  /** Counts a stream until {@link closeStream}. Returns the refusal if a limit is reached. */
  openStream(account: Account): Refusal | undefined {
    const { process } = this.#limits
    const { streams: most } = this.#limitsOf(account)
    if (most > 0 && account.streams >= most) return this.#refuse('caller_streams', account, most, 5)
    if (process.streams > 0 && this.#streams >= process.streams) {
      return this.#refuse('process_streams', account, process.streams, 5)
    }
    if (this.#watermark.exceeded) return this.#refuse('memory', account, 0, 5)
    account.streams++
    this.#streams++
    return undefined
  }

  closeStream(account: Account): void {
    account.streams--
    this.#streams--
  }

  /**
   * Adds to the unread bytes; a negative number subtracts. Returns `false` if the caller or the process holds too
   * many.
   */
  addUnread(account: Account, bytes: number): boolean {
    account.unreadBytes += bytes
    this.#unreadBytes += bytes
    if (bytes <= 0) return true
    const { unreadBytes: most } = this.#limitsOf(account)
    const { unreadBytes: all } = this.#limits.process
    const limit: LimitName | undefined =
      most > 0 && account.unreadBytes > most
        ? 'caller_unread_bytes'
        : all > 0 && this.#unreadBytes > all
          ? 'process_unread_bytes'
          : undefined
    if (limit === undefined) return true
    this.#onLimit({ limit, account: account.key })
    return false
  }

  #limitsOf({ anonymous }: Account): AccountLimits {
    return anonymous ? this.#limits.anonymous : this.#limits.verified
  }

  #refuse(limit: LimitName, { key, anonymous }: Account, most: number, retryAfterSeconds = 1): Refusal {
    this.#onLimit({ limit, account: key })
    return new Refusal('limit', limitText(limit, most, anonymous), { limit, retryAfterSeconds })
  }

  #sweep(): void {
    const now = performance.now()
    for (const [key, account] of this.#accounts) {
      if (!account.isIdle(now)) continue
      account.forgotten = true
      this.#accounts.delete(key)
    }
    this.#sweepAt = this.#accounts.size + SWEEP_STEP
  }
}

function withDefaults({ caller, process }: NonNullable<AdmissionOptions['limits']>): AdmissionLimits {
  return {
    caller: { ...DEFAULT_LIMITS.caller, ...caller },
    process: { ...DEFAULT_LIMITS.process, ...process },
  }
}

/** The exhausted resource of each limit, and the setting of the limit. */
const TEXTS: Readonly<Record<Exclude<LimitName, 'memory'>, readonly [what: string, setting: string]>> = {
  caller_rate: ['requests a second', 'LIMITS_CALLER_REQUESTS_PER_SECOND'],
  caller_requests: ['requests in flight', 'LIMITS_CALLER_REQUESTS_IN_FLIGHT'],
  caller_body_bytes: ['bytes of requests and answers', 'LIMITS_CALLER_BODY_BYTES'],
  caller_streams: ['open streams', 'LIMITS_CALLER_STREAMS'],
  caller_unread_bytes: ['unread bytes', 'LIMITS_PROCESS_UNREAD_BYTES'],
  process_requests: ['requests in flight', 'LIMITS_PROCESS_REQUESTS_IN_FLIGHT'],
  process_body_bytes: ['bytes of requests and answers', 'LIMITS_PROCESS_BODY_BYTES'],
  process_streams: ['open streams', 'LIMITS_PROCESS_STREAMS'],
  process_unread_bytes: ['unread bytes', 'LIMITS_PROCESS_UNREAD_BYTES'],
}

function limitText(limit: LimitName, most: number, anonymous: boolean): string {
  if (limit === 'memory') return 'the server is short of memory; try again later'
  const [what, setting] = TEXTS[limit]
  if (limit.startsWith('process_')) return `the server has reached its limit of ${most} ${what} (${setting}); try again`
  const whose = anonymous ? 'your network address' : 'this caller'
  // The limit of an anonymous caller derives from the limit of the process.
  const by = anonymous && limit !== 'caller_rate' ? setting.replace('CALLER', 'PROCESS') : setting
  return `${whose} has reached its limit of ${most} ${what} (${by}); finish some first, or try again later`
}

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

/** The age up to which a measurement is reused, in ms. A measurement takes about 20 µs. */
const SAMPLE_MS = 250

/** Checks if memory use is above the watermark. */
class MemoryWatermark {
  readonly #measure: () => number
  #percent: number
  #sampledAt = Number.NEGATIVE_INFINITY
  #exceeded = false

  /** @param percent The watermark in percent; 0 means no watermark */
  constructor(percent: number, measure: () => number = usedShare) {
    this.#percent = percent
    this.#measure = measure
  }

  set percent(percent: number) {
    this.#percent = percent
    this.#sampledAt = Number.NEGATIVE_INFINITY
  }

  get exceeded(): boolean {
    if (this.#percent === 0) return false
    const now = performance.now()
    if (now - this.#sampledAt >= SAMPLE_MS) {
      this.#sampledAt = now
      this.#exceeded = this.#measure() * 100 > this.#percent
    }
    return this.#exceeded
  }
}
