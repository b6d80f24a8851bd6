/** The kinds of broken promises; `gone`: answered as lost, and never delivered again. */
export type Breach = 'lost' | 'gone' | 'doubled' | 'outOfOrder' | 'hung' | 'unclear'

const EXAMPLES = 5

/** The results of one kind of load. */
export class Ledger {
  readonly kind: string
  attempted = 0
  acknowledged = 0
  /** Calls answered with an error that states its reason. */
  refused = 0
  /** Calls without an answer: each may have taken effect, at most once. */
  unknown = 0
  /** Permitted second deliveries. */
  again = 0
  /** The number of occurrences of each error code. */
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

  /** Returns some of the broken promises as text. */
  get examples(): readonly string[] {
    return this.#examples
  }
}
