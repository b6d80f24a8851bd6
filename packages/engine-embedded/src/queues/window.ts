import type { QueuedMessage } from '../store/message-rows.ts'

/** The deliverable messages in the order of their sequences. Removing at the front and adding at the end are cheap. */
export class Window {
  /** The entries. A removed entry leaves a gap before the head, and no reference to its message. */
  #entries: (QueuedMessage | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#entries.length - this.#head
  }

  get first(): QueuedMessage | undefined {
    return this.#entries[this.#head]
  }

  /** Iterates from the front. */
  *[Symbol.iterator](): Generator<QueuedMessage> {
    for (let at = this.#head; ; at++) {
      const entry = this.#entries[at]
      if (!entry) return
      yield entry
    }
  }

  shift(): QueuedMessage | undefined {
    const entry = this.#entries[this.#head]
    if (!entry) return undefined
    this.#entries[this.#head++] = undefined
    if (this.#head === this.#entries.length) {
      this.#entries = []
      this.#head = 0
    } else if (this.#head >= 1_024 && this.#head * 2 >= this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head)
      this.#head = 0
    }
    return entry
  }

  /** Adds an entry at its position; returns false if it exists already. */
  add(entry: QueuedMessage): boolean {
    const last = this.#entries.at(-1)
    if (this.length === 0 || !last || last.sequence < entry.sequence) {
      this.#entries.push(entry)
      return true
    }
    const at = this.#position(entry.sequence)
    if (this.#entries[at]?.sequence === entry.sequence) return false
    this.#entries.splice(at, 0, entry)
    return true
  }

  /** Removes and returns an entry; undefined if it does not exist. */
  remove(sequence: number): QueuedMessage | undefined {
    const at = this.#position(sequence)
    if (this.#entries[at]?.sequence !== sequence) return undefined
    return this.#entries.splice(at, 1)[0]
  }

  /** Removes the entries after the first `length` ones; returns the last remaining sequence. */
  truncate(length: number): number {
    this.#entries.length = Math.min(this.#entries.length, this.#head + length)
    return this.#entries.at(-1)?.sequence ?? 0
  }

  clear(): void {
    this.#entries = []
    this.#head = 0
  }

  /** Returns the position of the first entry with this sequence or a later one. */
  #position(sequence: number): number {
    let low = this.#head
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#entries[middle]?.sequence ?? 0) < sequence) low = middle + 1
      else high = middle
    }
    return low
  }
}
