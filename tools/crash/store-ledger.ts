import type { Violations } from './violations.ts'

/** An entry in the answer of `events_store_read`. */
export interface StoredEntry {
  readonly body: string
  readonly sequence: number
  readonly timestamp: string
}

/** The writes to one events store and its answers, over all lives of the server. */
export class StoreLedger {
  readonly channel: string
  readonly #violations: Violations
  /** The entries that readers saw; the entry with sequence 1 is at index 0. */
  readonly #seen: StoredEntry[] = []
  readonly #sequenceOf = new Map<string, number>()
  readonly #acknowledged = new Map<string, number>()
  #next = 1

  constructor(channel: string, violations: Violations) {
    this.channel = channel
    this.#violations = violations
  }

  nextBody(): string {
    return `${this.channel}#${this.#next++}`
  }

  acknowledge(body: string, sequence: number): void {
    this.#acknowledged.set(body, sequence)
  }

  get acknowledged(): number {
    return this.#acknowledged.size
  }

  /** Returns the last sequence that readers have seen. */
  get read(): number {
    return this.#seen.length
  }

  /** Records the result of a read from `from`. It may overlap earlier reads, whose entries must not have changed. */
  take(from: number, entries: readonly StoredEntry[]): void {
    let expected = from
    for (const entry of entries) {
      if (entry.sequence !== expected) {
        this.#violations.add('storeGap', `${this.channel}: sequence ${entry.sequence} where ${expected} was due`)
        return
      }
      expected++
      const before = this.#seen[entry.sequence - 1]
      if (before === undefined) this.#append(entry)
      else if (before.body !== entry.body || before.timestamp !== entry.timestamp) {
        this.#violations.add('storeChanged', `${this.channel}: ${entry.sequence} was ${before.body}, is ${entry.body}`)
      }
    }
  }

  #append(entry: StoredEntry): void {
    const twice = this.#sequenceOf.get(entry.body)
    if (twice !== undefined) {
      this.#violations.add('storeRepeat', `${this.channel}: ${entry.body} at ${twice} and at ${entry.sequence}`)
    }
    const previous = this.#seen.at(-1)
    if (previous !== undefined && entry.timestamp < previous.timestamp) {
      this.#violations.add('storeChanged', `${this.channel}: time runs backwards at ${entry.sequence}`)
    }
    this.#sequenceOf.set(entry.body, entry.sequence)
    this.#seen.push(entry)
  }

  /** Call this after a complete read from the start: `last` is the last sequence of the store. */
  finish(last: number): void {
    if (last < this.#seen.length) {
      this.#violations.add('storeChanged', `${this.channel}: ended at ${this.#seen.length}, now at ${last}`)
    }
    for (const [body, sequence] of this.#acknowledged) {
      const found = this.#sequenceOf.get(body)
      if (found === undefined) this.#violations.add('storeLost', `${this.channel}: ${body} with sequence ${sequence}`)
      else if (found !== sequence) {
        this.#violations.add('storeChanged', `${this.channel}: ${body} was acknowledged as ${sequence}, is at ${found}`)
      }
    }
  }
}
