import type { Item } from '../sources/source.ts'
import { BUFFERED_ITEMS } from '../sources/limits.ts'

type Named = Pick<Item, 'name'>

/**
 * The failed attempts of the messages that are tried again. They are stored with the position, so that a dead letter has
 * the attempts of all nodes and all starts. There is a limit, because a message may leave its queue, or be compacted
 * away, while no node tries it.
 */
export class FailedAttempts {
  readonly #counts: Map<string, number>

  constructor(stored: readonly (readonly [name: string, count: number])[] = []) {
    this.#counts = new Map(stored)
  }

  /** Returns the number of failed attempts of a message. */
  of({ name }: Named): number {
    return this.#counts.get(name) ?? 0
  }

  /** Counts a failed attempt of a delivery. */
  add(items: readonly Named[]): void {
    for (const item of items) {
      const count = this.of(item) + 1
      this.#counts.delete(item.name)
      this.#counts.set(item.name, count)
    }
    // The first are those that have not failed for the longest time.
    for (const name of this.#counts.keys()) {
      if (this.#counts.size <= BUFFERED_ITEMS) break
      this.#counts.delete(name)
    }
  }

  /** Forgets messages that are not tried again. */
  forget(items: readonly Named[]): void {
    if (this.#counts.size === 0) return
    for (const { name } of items) this.#counts.delete(name)
  }

  /** The counts to store. */
  get stored(): [name: string, count: number][] {
    return [...this.#counts]
  }
}
