import assert from 'node:assert/strict'

/** The groups of a queue at a moment; undefined if it has none. */
export type TracedMode = { readonly ordered: boolean; readonly limit: number } | undefined

interface TracedGroup {
  readonly name: string
  /** The sequences of messages that exist and are not leased, sorted. */
  readonly waiting: number[]
  readonly leased: Set<number>
  /** The groups that were delivered since this one was, or since it has had a deliverable message. */
  readonly since: Set<string>
}

/**
 * Checks the deliveries of a queue with groups. It knows only the events that a user of the queue sees, in their order,
 * and nothing of the engine. Each method throws an AssertionError if the event breaks a rule:
 *
 * - A group has no more leased messages than its limit.
 * - In an ordered queue, no message comes before the end of an earlier one of its group.
 * - In a fair queue, between two deliveries of a group that has deliverable messages, each other group has at most one.
 * - Each message that was sent ends once.
 */
export class GroupTrace {
  readonly #groups = new Map<string, TracedGroup>()
  readonly #groupOf = new Map<number, TracedGroup>()
  readonly #checksTurns: boolean
  #mode: TracedMode

  /** @param checksTurns Checks the third rule, which costs a step for each group with each delivery */
  constructor(checksTurns: boolean) {
    this.#checksTurns = checksTurns
  }

  /** The number of messages that have not ended. */
  get size(): number {
    return this.#groupOf.size
  }

  get leased(): number {
    let leased = 0
    for (const group of this.#groups.values()) leased += group.leased.size
    return leased
  }

  /** Returns whether the message is the next one of its group. */
  isNext(sequence: number): boolean {
    return this.#groupOf.get(sequence)?.waiting[0] === sequence
  }

  /** The number of groups with a message that could be delivered now. */
  get deliverable(): number {
    return [...this.#groups.values()].filter((group) => this.#isDeliverable(group)).length
  }

  #isDeliverable({ name, waiting, leased }: TracedGroup): boolean {
    return waiting.length > 0 && leased.size < this.#limitOf(name)
  }

  #limitOf(group: string): number {
    if (!this.#mode || (this.#mode.ordered && group === '')) return Infinity
    return this.#mode.ordered ? 1 : this.#mode.limit || Infinity
  }

  setMode(mode: TracedMode): void {
    this.#mode = mode
    this.#startOver()
  }

  #startOver(): void {
    for (const { since } of this.#groups.values()) since.clear()
  }

  /** A message was sent. Sequences are in the order of the sends. */
  sent(sequence: number, group: string): void {
    let traced = this.#groups.get(group)
    if (!traced) {
      traced = { name: group, waiting: [], leased: new Set(), since: new Set() }
      this.#groups.set(group, traced)
    }
    assert.ok(!this.#groupOf.has(sequence), `message ${sequence} is sent once`)
    this.#groupOf.set(sequence, traced)
    place(traced.waiting, sequence)
  }

  delivered(sequence: number): void {
    const group = this.#groupOf.get(sequence)
    assert.ok(group, `message ${sequence} exists when it is delivered`)
    const { name, waiting, leased } = group
    const at = waiting.indexOf(sequence)
    assert.ok(at >= 0, `message ${sequence} is not leased when it is delivered`)
    assert.ok(leased.size < this.#limitOf(name), `group ${name} has ${leased.size} leased when ${sequence} comes`)
    if (this.#mode?.ordered && name !== '') assert.equal(at, 0, `${sequence} comes before ${String(waiting[0])}`)
    if (this.#checksTurns && this.#mode && !this.#mode.ordered) this.#checkTurns(group)
    waiting.splice(at, 1)
    leased.add(sequence)
    if (!this.#isDeliverable(group)) group.since.clear()
  }

  #checkTurns(delivered: TracedGroup): void {
    for (const group of this.#groups.values()) {
      if (group === delivered || !this.#isDeliverable(group)) continue
      assert.ok(!group.since.has(delivered.name), `${delivered.name} comes twice while ${group.name} waits`)
      group.since.add(delivered.name)
    }
    delivered.since.clear()
  }

  /** A lease ended, and the message is deliverable again. */
  returned(sequence: number): void {
    const group = this.#groupOf.get(sequence)
    assert.ok(group, `message ${sequence} exists when it returns`)
    assert.ok(group.leased.delete(sequence), `message ${sequence} was leased`)
    place(group.waiting, sequence)
  }

  /** A message was removed: acknowledged, dead-lettered or purged. */
  ended(sequence: number): void {
    const group = this.#groupOf.get(sequence)
    assert.ok(group, `message ${sequence} ends once`)
    this.#groupOf.delete(sequence)
    if (group.leased.delete(sequence)) return
    group.waiting.splice(group.waiting.indexOf(sequence), 1)
    if (!this.#isDeliverable(group)) group.since.clear()
  }

  /** Every message that is not leased was removed. Returns their number. */
  purged(): number {
    const waiting = [...this.#groups.values()].flatMap((group) => group.waiting)
    for (const sequence of waiting) this.ended(sequence)
    return waiting.length
  }

  /** The queue was opened again: a new circle of turns begins. */
  restarted(): void {
    this.#startOver()
  }
}

/** Adds a sequence at its position. Most belong at the end. */
function place(sequences: number[], sequence: number): void {
  let at = sequences.length
  while (at > 0 && (sequences[at - 1] ?? 0) > sequence) at--
  sequences.splice(at, 0, sequence)
}
