/**
 * The entries of an events store that are under way, and the position that follows from them: the first entry that is
 * not delivered, and later ones that are. Entries start in the order of their sequences.
 */
export class Progress {
  #next: number
  /** The sequences that started, in order, with `true` for finished ones. */
  readonly #started = new Map<number, boolean>()
  readonly #doneBefore: ReadonlySet<number>

  constructor(next: number, done: readonly number[]) {
    this.#next = next
    this.#doneBefore = new Set(done)
  }

  /** Marks an entry as started. Returns `false` if it was delivered before, and is finished. */
  start(sequence: number): boolean {
    const before = this.#doneBefore.has(sequence)
    this.#started.set(sequence, before)
    if (before) this.#advance()
    return !before
  }

  finish(sequence: number): void {
    this.#started.set(sequence, true)
    this.#advance()
  }

  /** The first sequence that is not delivered. */
  get next(): number {
    return this.#next
  }

  /** Later sequences that are delivered. */
  get done(): number[] {
    const now = Array.from(this.#started).flatMap(([sequence, finished]) => (finished ? [sequence] : []))
    const before = [...this.#doneBefore].filter((sequence) => sequence >= this.#next && !this.#started.has(sequence))
    return [...now, ...before]
  }

  #advance(): void {
    for (const [sequence, finished] of this.#started) {
      if (!finished) {
        this.#next = sequence
        return
      }
      this.#started.delete(sequence)
      this.#next = sequence + 1
    }
  }
}
