import type { Item } from '../sources/source.ts'
import { BUFFERED_ITEMS } from '../sources/limits.ts'

/**
 * The failed attempts of the messages that are tried again. They are stored with the position, so that a dead letter has
 * the attempts of all nodes and all starts.
 */
export class FailedAttempts {
  readonly #counts: Map<string, number>

  constructor(stored: readonly (readonly [name: string, count: number])[] = []) {
    this.#counts = new Map(stored)
  }

  /** Returns the number of failed attempts of a message. */
  of({ name }: Item): number {
    return this.#counts.get(name) ?? 0
  }

  /** Counts a failed attempt of a delivery. */
  add(items: readonly Item[]): void {
    for (const item of items) {
      const count = this.of(item) + 1
      // The last one in order: `stored` keeps the last ones.
      this.#counts.delete(item.name)
      this.#counts.set(item.name, count)
    }
  }

  /** Forgets messages that are not tried again. */
  forget(items: readonly Item[]): void {
    if (this.#counts.size === 0) return
    for (const { name } of items) this.#counts.delete(name)
  }

  /**
   * Returns the counts to store. There is a limit, because a message may leave its queue, or be compacted away, while no
   * node tries it.
   */
  get stored(): [name: string, count: number][] {
    return [...this.#counts].slice(-BUFFERED_ITEMS)
  }
}
