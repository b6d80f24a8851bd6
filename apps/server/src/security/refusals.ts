/** Refusals of one address that were not reported yet. */
interface Counted {
  count: number
  reason: string
}

export interface RefusalReport {
  readonly address: string
  readonly count: number
  /** The reason of the last refusal. */
  readonly reason: string
}

const MINUTE_MS = 60_000

/** The most addresses that are counted separately in a minute; the others are counted together. */
const MAX_ADDRESSES = 1_000
const OTHERS = 'others'

/**
 * Counts refusals for each address. Reports the first one at once, and the others at the end of the
 * minute with one report, so that a single wrong token is visible and a flood is one line.
 */
export class Refusals implements Disposable {
  readonly #report: (refusal: RefusalReport) => void
  readonly #everyMs: number
  #waiting = new Map<string, Counted>()
  #timer: NodeJS.Timeout | undefined

  constructor(report: (refusal: RefusalReport) => void, everyMs = MINUTE_MS) {
    this.#report = report
    this.#everyMs = everyMs
  }

  add(from: string | undefined, reason: string): void {
    const address = this.#nameOf(from ?? 'unknown')
    const counted = this.#waiting.get(address)
    if (counted === undefined) {
      this.#waiting.set(address, { count: 0, reason })
      this.#timer ??= setTimeout(() => this.#flush(), this.#everyMs).unref()
      this.#report({ address, count: 1, reason })
    } else {
      counted.count++
      counted.reason = reason
    }
  }

  [Symbol.dispose](): void {
    this.#flush()
    clearTimeout(this.#timer)
  }

  #nameOf(address: string): string {
    return this.#waiting.has(address) || this.#waiting.size < MAX_ADDRESSES ? address : OTHERS
  }

  #flush(): void {
    const ended = this.#waiting
    this.#waiting = new Map()
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const [address, { count, reason }] of ended) if (count > 0) this.#report({ address, count, reason })
  }
}
