import { download } from '../outbound/documents.ts'
import { resolveBySystem } from '../names/name-resolver.ts'
import type { ResolveHost } from '../names/name-resolver.ts'
import { jose, keySetAlgorithms, parseKeySet } from './keys.ts'
import type { FindKey, KeyEvents, KeySource } from './keys.ts'

/** Times of a key set behind a URL. */
export interface KeyUrlTimes {
  /**
   * Age after which the keys are fetched again while the current ones stay in use, in ms. After twice this age,
   * verifications wait for the new keys.
   * @default 300000
   */
  readonly maxAgeMs?: number
  /**
   * Time after a fetch that brought no new keys, in which an unknown key id causes no further fetch, in ms.
   * @default 10000
   */
  readonly cooldownMs?: number
  /** Time between a failed fetch and the next one, in ms. @default 1000 */
  readonly retryMs?: number
  /** Time-out of a fetch, in ms. @default 5000 */
  readonly timeoutMs?: number
}

/** The largest key set that is read, in bytes. */
const MAX_KEY_SET = 1_048_576

/** The most fetches that a token waits for: one fetch may have started before the token arrived. */
const MAX_FETCHES = 2

/**
 * A JSON Web Key Set behind a URL. The first fetch starts in the constructor, and tokens wait for it. An unknown key
 * id causes another fetch, because keys rotate. If that brings no new keys, the next one waits for the cool-down.
 * While the server fails, the current keys stay in use.
 */
export class KeyUrl implements KeySource {
  readonly algorithms: readonly string[]
  version = 0
  readonly #url: URL
  readonly #events: KeyEvents
  readonly #times: Required<KeyUrlTimes>
  readonly #resolve: ResolveHost
  readonly #closing = new AbortController()
  #text = ''
  #keys: FindKey | undefined
  #fetchedAt = 0
  #notBefore = 0
  #reported = ''
  #pending: Promise<void> | undefined

  /** @throws RangeError for a URL that is not http or https, or that contains credentials */
  constructor(
    url: string,
    wanted: readonly string[],
    events: KeyEvents,
    times: KeyUrlTimes = {},
    resolve: ResolveHost = resolveBySystem,
  ) {
    this.algorithms = keySetAlgorithms(wanted)
    this.#url = checkedUrl(url)
    this.#events = events
    this.#resolve = resolve
    this.#times = { maxAgeMs: 300_000, cooldownMs: 10_000, retryMs: 1_000, timeoutMs: 5_000, ...times }
    void this.#refresh()
  }

  readonly find: FindKey = async (header, token) => {
    await this.#upToDate()
    for (let fetches = 0; ; fetches++) {
      const keys = this.#keys
      try {
        return await this.#current(header, token)
      } catch (error) {
        if (!(error instanceof jose().errors.JWKSNoMatchingKey) || fetches === MAX_FETCHES) throw error
        // Another token may have caused a fetch in the meantime.
        if (this.#keys === keys) await this.#refresh()
        if (this.#keys === keys) throw error
      }
    }
  };

  [Symbol.dispose](): void {
    this.#closing.abort()
  }

  readonly #current: FindKey = async (header, token) => {
    if (this.#keys === undefined) throw new Error('no keys have been fetched yet')
    return this.#keys(header, token)
  }

  /** Waits for new keys if the current ones are too old. Does not wait for a server that fails. */
  async #upToDate(): Promise<void> {
    const age = performance.now() - this.#fetchedAt
    if (this.#keys !== undefined && age < this.#times.maxAgeMs) return
    const refreshed = this.#refresh()
    if (this.#keys === undefined || (age > 2 * this.#times.maxAgeMs && this.#reported === '')) await refreshed
  }

  /** Fetches the set, unless the last fetch is too recent. Never rejects. Simultaneous calls share one fetch. */
  #refresh(): Promise<void> {
    if (this.#pending !== undefined) return this.#pending
    if (performance.now() < this.#notBefore) return Promise.resolve()
    this.#pending = this.#fetch().finally(() => {
      this.#pending = undefined
    })
    return this.#pending
  }

  async #fetch(): Promise<void> {
    try {
      const text = await this.#download()
      const keys = text === this.#text ? this.#keys : parseKeySet(text)
      const isOther = keys !== this.#keys
      const isFirst = this.#keys === undefined
      this.#text = text
      this.#keys = keys
      this.#fetchedAt = performance.now()
      this.#reported = ''
      if (!isOther) {
        this.#notBefore = performance.now() + this.#times.cooldownMs
        return
      }
      this.version++
      if (!isFirst) this.#events.changed()
    } catch (error) {
      this.#notBefore = performance.now() + this.#times.retryMs
      this.#report(error)
    }
  }

  #download(): Promise<string> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(this.#times.timeoutMs)])
    return download(this.#url, {
      accept: 'application/jwk-set+json, application/json',
      maxBytes: MAX_KEY_SET,
      signal,
      resolve: this.#resolve,
    })
  }

  #report(error: unknown): void {
    if (this.#closing.signal.aborted) return
    const reason = `${this.#url.href}: ${reasonOf(error)}`
    if (reason !== this.#reported) this.#events.failed(reason)
    this.#reported = reason
  }
}

function checkedUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.password !== '') {
    throw new RangeError(`${JSON.stringify(text)}: allowed is an http or https URL without credentials`)
  }
  return url
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.name === 'TimeoutError') return 'the server did not answer in time'
  return 'code' in error ? `the server cannot be reached (${String(error.code)})` : error.message
}
