import type { Item } from '../sources/source.ts'
import { MAX_IN_FLIGHT } from '../sources/source.ts'

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

type Named = Pick<Item, 'name'>

interface Failed {
  readonly count: number
  readonly sinceMs: number
}

/**
 * The failed attempts of the messages that are tried again, and the times of the first ones. They are stored with the
 * position, so that they include the attempts of all nodes and all starts. There is a limit, because a message may leave
 * its queue, or be compacted away, while no node tries it.
 */
export class FailedAttempts {
  readonly #failed: Map<string, Failed>

  constructor(stored: readonly (readonly [name: string, count: number, sinceMs: number])[] = []) {
    this.#failed = new Map(stored.map(([name, count, sinceMs]) => [name, { count, sinceMs }]))
  }

  /** Returns the number of failed attempts of a message. */
  of({ name }: Named): number {
    return this.#failed.get(name)?.count ?? 0
  }

  /** Returns the time of the first attempt of a message, in ms since the epoch; `undefined` if none failed. */
  since({ name }: Named): number | undefined {
    return this.#failed.get(name)?.sinceMs
  }

  /** Counts a failed attempt of a delivery whose first attempt was at `sinceMs`. */
  add(items: readonly Named[], sinceMs: number): void {
    for (const { name } of items) {
      const known = this.#failed.get(name)
      this.#failed.delete(name)
      this.#failed.set(name, { count: (known?.count ?? 0) + 1, sinceMs: known?.sinceMs ?? sinceMs })
    }
    // The map is ordered by the last failure, oldest first.
    for (const name of this.#failed.keys()) {
      if (this.#failed.size <= MAX_IN_FLIGHT) break
      this.#failed.delete(name)
    }
  }

  /** Forgets messages that are not tried again. */
  forget(items: readonly Named[]): void {
    if (this.#failed.size === 0) return
    for (const { name } of items) this.#failed.delete(name)
  }

  /** The entries to store. */
  get stored(): [name: string, count: number, sinceMs: number][] {
    return [...this.#failed].map(([name, { count, sinceMs }]) => [name, count, sinceMs])
  }
}
