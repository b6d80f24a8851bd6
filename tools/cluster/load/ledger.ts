/** Ways to break a promise. */
export type Breach = 'lost' | 'doubled' | 'outOfOrder' | 'hung' | 'unclear'

const EXAMPLES = 5

/** What became of one kind of load. */
export class Ledger {
  readonly kind: string
  attempted = 0
  acknowledged = 0
  /** Answered with an error that says what is wrong. */
  refused = 0
  /** No answer: it may have been done, once for each of these at the most. */
  unknown = 0
  /** Delivered once more where that is allowed. */
  again = 0
  /** How often each error code came. */
  readonly refusals = new Map<string, number>()
  readonly #breaches = new Map<Breach, number>()
  readonly #examples: string[] = []

  constructor(kind: string) {
    this.kind = kind
  }

  refuse(code: string): void {
    this.refused++
    this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1)
  }

  break(breach: Breach, example: string, count = 1): void {
    if (count === 0) return
    const before = this.broken(breach)
    this.#breaches.set(breach, before + count)
    if (before < EXAMPLES) this.#examples.push(`${this.kind}, ${breach}: ${example}`)
  }

  broken(breach: Breach): number {
    return this.#breaches.get(breach) ?? 0
  }

  /** Some of the broken promises, in words. */
  get examples(): readonly string[] {
    return this.#examples
  }
}
