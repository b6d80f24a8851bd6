/** A member's place in a {@link Roster}. */
export interface Place {
  /** False when it was left before. */
  leave(): boolean
}

/**
 * Who is there, in the order they came; for what comes and goes with every request.
 *
 * A `Set` does the same and is a trap here: V8 moves it to a new table every so many additions, and each old table points
 * to the next. Once one of them stands in the old generation, as it does after a full collection, every later table and
 * all that was ever in it outlives the scavenges, which then take 20 ms instead of one. What left a roster points nowhere.
 */
export class Roster<T> {
  #first: Link<T> | undefined
  #last: Link<T> | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  get first(): T | undefined {
    return this.#first?.member
  }

  /** Adds a member at the end. */
  enter(member: T): Place {
    const link: Link<T> = { member, before: this.#last, after: undefined, left: false, leave: () => this.#leave(link) }
    if (this.#last) this.#last.after = link
    else this.#first = link
    this.#last = link
    this.#size++
    return link
  }

  #leave(link: Link<T>): boolean {
    if (link.left) return false
    const { before, after } = link
    if (before) before.after = after
    else this.#first = after
    if (after) after.before = before
    else this.#last = before
    link.before = undefined
    link.after = undefined
    link.left = true
    this.#size--
    return true
  }

  /** Those who are there now, whoever leaves meanwhile. */
  members(): T[] {
    const members: T[] = []
    for (let link = this.#first; link; link = link.after) members.push(link.member)
    return members
  }
}

interface Link<T> extends Place {
  readonly member: T
  before: Link<T> | undefined
  after: Link<T> | undefined
  left: boolean
}
