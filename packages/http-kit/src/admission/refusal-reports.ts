/** Refusals of one address and for one reason that were not reported yet. */
type Counts = Map<string, number>

export interface RefusalReport {
  readonly address: string
  readonly count: number
  readonly reason: string
}

const MINUTE_MS = 60_000

/** The most addresses that are counted separately in a minute; the others are counted together. */
const MAX_ADDRESSES = 1_000
const OTHERS = 'others'

/** The most reasons that are reported separately for an address in a minute. */
const MAX_REASONS = 12
const OTHER_REASONS = 'other reasons'

/**
 * Counts refusals for each address and reason. Reports the first one of each at once, and the others at
 * the end of the minute with one report, so that a single wrong token is visible and a flood is few
 * lines.
 */
export class Refusals implements Disposable {
  readonly #report: (refusal: RefusalReport) => void
  readonly #everyMs: number
  #waiting = new Map<string, Counts>()
  #timer: NodeJS.Timeout | undefined

  constructor(report: (refusal: RefusalReport) => void, everyMs = MINUTE_MS) {
    this.#report = report
    this.#everyMs = everyMs
  }

  add(from: string | undefined, given: string): void {
    const address = this.#nameOf(from ?? 'unknown')
    const counts: Counts = this.#waiting.get(address) ?? new Map()
    const reason = counts.has(given) || counts.size < MAX_REASONS ? given : OTHER_REASONS
    const count = counts.get(reason)
    counts.set(reason, count === undefined ? 0 : count + 1)
    if (count !== undefined) return
    this.#waiting.set(address, counts)
    this.#timer ??= setTimeout(() => this.#flush(), this.#everyMs).unref()
    this.#report({ address, count: 1, reason })
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
    for (const [address, counts] of ended) {
      for (const [reason, count] of counts) if (count > 0) this.#report({ address, count, reason })
    }
  }
}
