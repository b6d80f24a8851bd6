import type { QueueMessage } from '@signalbox/broker-core/engine'

/** A message near the head of a queue. */
export interface WindowEntry {
  readonly sequence: number
  /** Deliveries so far, as stored or about to be. */
  receiveCount: number
  /** From here on known once the message was in memory. */
  size: number
  expiresAt: number
  maxReceiveCount: number
  deadLetterQueue: string
  /** The message, where it is kept in memory; otherwise it is read when it is delivered. */
  message: QueueMessage | undefined
}

/** An entry of which only the place is known yet. */
export function entryAt(sequence: number): WindowEntry {
  return {
    sequence,
    receiveCount: 0,
    size: 0,
    expiresAt: 0,
    maxReceiveCount: 0,
    deadLetterQueue: '',
    message: undefined,
  }
}

/** Deliverable messages in the order of their sequences. Taking from the front and adding at the end are cheap. */
export class Window {
  /** What was taken leaves a gap before the head, not the entry with its message. */
  #entries: (WindowEntry | undefined)[] = []
  #head = 0

  get length(): number {
    return this.#entries.length - this.#head
  }

  get first(): WindowEntry | undefined {
    return this.#entries[this.#head]
  }

  /** From the front on. */
  *[Symbol.iterator](): Generator<WindowEntry> {
    for (let at = this.#head; ; at++) {
      const entry = this.#entries[at]
      if (!entry) return
      yield entry
    }
  }

  shift(): WindowEntry | undefined {
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

  /** Puts an entry in its place; false when it is there already. */
  add(entry: WindowEntry): boolean {
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

  /** Takes an entry out; undefined when it is not there. */
  remove(sequence: number): WindowEntry | undefined {
    const at = this.#position(sequence)
    if (this.#entries[at]?.sequence !== sequence) return undefined
    return this.#entries.splice(at, 1)[0]
  }

  /** Drops the entries at the end, so that `length` remain; returns the last sequence that remains. */
  truncate(length: number): number {
    this.#entries.length = Math.min(this.#entries.length, this.#head + length)
    return this.#entries.at(-1)?.sequence ?? 0
  }

  clear(): void {
    this.#entries = []
    this.#head = 0
  }

  /** Where the first entry with this sequence or a later one is. */
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
