/** The share of its weight that a member keeps from one step to the next: half of it after six minutes. */
const DECAY = 0.99
/** A newcomer must be this much more active than the member that it replaces. */
const LEAD = 2

interface Member<Value> {
  readonly value: Value
  weight: number
}

/**
 * The most active of many channels or agents, at most `limit`. Their weight decays, so a channel that
 * was busy yesterday is replaced by one that is busy now.
 */
export class MostActive<Value> {
  readonly #limit: number
  readonly #members = new Map<string, Member<Value>>()

  constructor(limit: number) {
    this.#limit = limit
  }

  get(key: string): Value | undefined {
    return this.#members.get(key)?.value
  }

  /** Lets the weights decay. Called once a step, before {@link add}. */
  decay(): void {
    for (const member of this.#members.values()) member.weight *= DECAY
  }

  /** Adds to the weight of a member, or admits it. Returns undefined while others are more active. */
  add(key: string, weight: number, make: () => Value): Value | undefined {
    const known = this.#members.get(key)
    if (known !== undefined) {
      known.weight += weight
      return known.value
    }
    if (this.#members.size >= this.#limit && !this.#makeRoom(weight)) return undefined
    const value = make()
    this.#members.set(key, { value, weight })
    return value
  }

  #makeRoom(weight: number): boolean {
    let lowest: string | undefined
    let lowestWeight = weight / LEAD
    for (const [key, member] of this.#members) {
      if (member.weight >= lowestWeight) continue
      lowest = key
      lowestWeight = member.weight
    }
    return lowest !== undefined && this.#members.delete(lowest)
  }

  delete(key: string): void {
    this.#members.delete(key)
  }

  /** Returns the members, the most active first. */
  list(): readonly Value[] {
    return [...this.#members.values()].toSorted((a, b) => b.weight - a.weight).map(({ value }) => value)
  }
}
