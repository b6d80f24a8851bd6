import type { GroupSettings } from '@signalbox/broker-core/engine'
import { groupLimitOf } from '@signalbox/broker-core/engine'
import { NumberMap } from '@signalbox/broker-core/internal'

import type { LiveChannel } from '../channel-registry.ts'
import type { QueueReader } from './queue-reader.ts'

/** The maximum number of groups in memory that have no leased message. */
const MAX_READY = 4_096
/** The maximum number of groups that one call reads: a few milliseconds of work. */
const SEARCH_STEP = 500

/** A group with messages that are leased, being settled, or backing off. */
interface HeldGroup {
  readonly key: string
  count: number
  /** No deliverable message of the group has this sequence or a lower one. */
  after: number
}

/**
 * The next groups of a queue, in a circle ordered by their names. The cursor is the group of the last delivery, and
 * each step goes on to the next group with a deliverable message, so that between two deliveries of a group each other
 * group has at most one.
 *
 * Names are read from disk when the circle reaches them. Invariant: each group from the cursor to `#readTo`, or each
 * group if `#complete` is set, is in `#ready` if it may have a deliverable message. `#ready` may also have groups
 * without one; they are removed when the circle reaches them.
 */
export class GroupWindow {
  readonly #reader: QueueReader
  /** The groups of held messages, by sequence and by name. */
  readonly #held = new NumberMap<HeldGroup>()
  readonly #heldGroups = new Map<string, HeldGroup>()
  /** Messages that are on disk and not deliverable, because they are about to be removed. */
  readonly #leaving = new NumberMap<HeldGroup>()
  /** Names of groups, sorted. */
  #ready: string[] = []
  #cursor: string | undefined
  #readTo: string | undefined
  #complete = false
  #settings: GroupSettings | undefined

  constructor(reader: QueueReader) {
    this.#reader = reader
  }

  /**
   * Returns the next deliverable message and its group. Undefined if there is none, or if the search takes long: then
   * {@link searching} is set.
   */
  next(
    channel: LiveChannel,
    settings: GroupSettings,
  ): { readonly group: string; readonly sequence: number } | undefined {
    if (settings !== this.#settings) this.forget()
    this.#settings = settings
    for (let reads = 0; reads < SEARCH_STEP; reads++) {
      const at = this.#nextReady()
      const group = this.#ready[at]
      if (group === undefined) {
        if (this.#complete) return undefined
        this.#readNext(channel)
        continue
      }
      const sequence = this.#isFull(group) ? undefined : this.#firstOf(channel, group)
      if (sequence !== undefined) return { group, sequence }
      this.#ready.splice(at, 1)
    }
    return undefined
  }

  /** `true` if groups on disk are not read yet, so that a call of {@link next} may find a message. */
  get searching(): boolean {
    return !this.#complete || this.#ready.length > 0
  }

  /** Returns the position in `#ready` of the first group after the cursor, which may be the first of all. */
  #nextReady(): number {
    const at = this.#cursor === undefined ? 0 : this.#positionAfter(this.#cursor)
    return at < this.#ready.length ? at : 0
  }

  /** Reads the next group of the circle. */
  #readNext(channel: LiveChannel): void {
    const [group] = this.#reader.nextGroup(channel, this.#readTo) ?? []
    const isSecondHalf = this.#cursor !== undefined && isBefore(this.#readTo, this.#cursor)
    if (isSecondHalf) {
      // The circle ends with the group of the cursor.
      this.#complete = group === undefined || !isBefore(group, this.#cursor)
      if (group === undefined || isBefore(this.#cursor, group)) return
    } else if (group === undefined) {
      this.#complete = this.#cursor === undefined
      this.#readTo = undefined
      return
    }
    this.#readTo = group
    if (!this.#isFull(group)) this.#insert(group)
  }

  #isFull(group: string): boolean {
    const count = this.#heldGroups.get(group)?.count ?? 0
    return count > 0 && this.#settings !== undefined && count >= groupLimitOf(this.#settings, group)
  }

  /** Returns the first deliverable message of a group. */
  #firstOf(channel: LiveChannel, group: string): number | undefined {
    const held = this.#heldGroups.get(group)
    for (let after = held?.after ?? 0; ;) {
      const sequence = this.#reader.nextOfGroup(channel, group, after)
      if (sequence === undefined || !(this.#held.has(sequence) || this.#leaving.has(sequence))) return sequence
      after = sequence
      if (held) held.after = sequence
    }
  }

  /** Moves the cursor to the group of a message that is delivered now. */
  delivered(group: string, sequence: number): void {
    this.hold(group, sequence)
    this.#cursor = group
    if (this.#isFull(group) || !this.#complete) this.#removeReady(group)
  }

  /** Records a message that is held, so that no other call returns it. */
  hold(group: string, sequence: number): void {
    const held = this.#groupOf(group)
    held.count++
    this.#held.set(sequence, held)
  }

  /** Records a message that is about to be removed. It does not count as held. */
  leave(group: string, sequence: number): void {
    this.#leaving.set(sequence, { key: group, count: 0, after: 0 })
  }

  #groupOf(key: string): HeldGroup {
    let held = this.#heldGroups.get(key)
    if (!held) {
      held = { key, count: 0, after: 0 }
      this.#heldGroups.set(key, held)
    }
    return held
  }

  /** Returns the group of a held message. */
  groupOf(sequence: number): string | undefined {
    return this.#held.get(sequence)?.key
  }

  /** Handles a held message that was removed: its group may be free again. */
  removed(sequence: number): void {
    // The removal of one that was about to be removed may have failed.
    if (this.#leaving.has(sequence)) this.returned(sequence)
    const held = this.#release(sequence)
    if (held) this.#offer(held.key)
  }

  /** Handles a held message that is deliverable again. */
  returned(sequence: number): void {
    const group = this.#release(sequence) ?? this.#leaving.get(sequence)
    this.#leaving.delete(sequence)
    if (group) this.arrived(group.key, sequence)
  }

  #release(sequence: number): HeldGroup | undefined {
    const held = this.#held.get(sequence)
    if (!held) return undefined
    this.#held.delete(sequence)
    if (--held.count === 0) this.#heldGroups.delete(held.key)
    return held
  }

  /** Handles a message that is deliverable unless its group has too many leased ones. */
  arrived(group: string, sequence: number): void {
    const held = this.#heldGroups.get(group)
    if (held) held.after = Math.min(held.after, sequence - 1)
    this.#offer(group)
  }

  #offer(group: string): void {
    if (!this.#isFull(group) && this.#isRead(group)) this.#insert(group)
  }

  /** Returns whether the group belongs in `#ready`, and not only on disk. */
  #isRead(group: string): boolean {
    if (this.#complete) return true
    const [from, to] = [this.#cursor, this.#readTo]
    if (from !== undefined && isBefore(to, from)) return isBefore(from, group) || !isBefore(to, group)
    return isBefore(from, group) && !isBefore(to, group)
  }

  #insert(group: string): void {
    const at = this.#positionAfter(group)
    if (this.#ready[at - 1] === group) return
    this.#ready.splice(at, 0, group)
    if (this.#ready.length <= MAX_READY) return
    // The last ones of the circle stay on disk.
    const next = this.#nextReady()
    this.#ready.splice(next === 0 ? this.#ready.length - 1 : next - 1, 1)
    this.#readTo = this.#ready[(this.#nextReady() || this.#ready.length) - 1]
    this.#complete = false
  }

  #removeReady(group: string): void {
    const at = this.#positionAfter(group) - 1
    if (this.#ready[at] === group) this.#ready.splice(at, 1)
  }

  /** Returns the position of the first name after this one. */
  #positionAfter(group: string): number {
    let low = 0
    let high = this.#ready.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (isBefore(group, this.#ready[middle])) high = middle
      else low = middle + 1
    }
    return low
  }

  /** Forgets the groups that were read, but not the held messages. */
  forget(): void {
    this.#ready = []
    this.#readTo = this.#cursor
    this.#complete = false
  }
}

/** Returns whether a name comes before another one, in the order of their UTF-8 bytes. undefined comes before all. */
function isBefore(a: string | undefined, b: string | undefined): boolean {
  if (b === undefined || a === b) return false
  if (a === undefined) return true
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const [left, right] = [a.charCodeAt(at), b.charCodeAt(at)]
    if (left === right) continue
    // Surrogates stand for code points above all others, but their codes are lower than U+E000.
    return left >= 0xd800 && right >= 0xd800 ? fixed(left) < fixed(right) : left < right
  }
  return a.length < b.length
}

function fixed(code: number): number {
  return code >= 0xe000 ? code - 0x800 : code + 0x2000
}
