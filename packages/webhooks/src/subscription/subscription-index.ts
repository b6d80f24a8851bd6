import type { CursorRecord, SubscriptionRecord } from './subscription-record.ts'
import { readCursor, readSubscription } from './subscription-record.ts'
import type { LogEntry } from './webhook-log.ts'

const SUBSCRIPTION = 's/'
const CURSOR = 'c/'

export function subscriptionKey(id: string): string {
  return SUBSCRIPTION + id
}

export function cursorKey(id: string): string {
  return CURSOR + id
}

/** A subscription with its position, as a node knows them. */
export interface KnownSubscription {
  readonly id: string
  readonly record: SubscriptionRecord
  readonly recordSequence: number
  readonly cursor: CursorRecord
  readonly cursorSequence: number
}

interface Half<T> {
  readonly sequence: number
  readonly value: T | undefined
}

/** The subscriptions of all nodes, from the entries of the log. */
export class SubscriptionIndex {
  readonly #records = new Map<string, Half<SubscriptionRecord>>()
  readonly #cursors = new Map<string, Half<CursorRecord>>()

  /**
   * Applies an entry, unless a later one of the same key is known: a node applies its own writes before the log returns
   * them. Returns the id of the subscription that changed.
   */
  apply({ key, sequence, value }: LogEntry): string | undefined {
    const id = key.slice(SUBSCRIPTION.length)
    if (key.startsWith(SUBSCRIPTION)) return put(this.#records, id, sequence, readSubscription(value)) ? id : undefined
    if (key.startsWith(CURSOR)) return put(this.#cursors, id, sequence, readCursor(value)) ? id : undefined
    return undefined
  }

  /** Returns `true` if an entry, or a later one of the same key, was applied. */
  knows(key: string, sequence: number): boolean {
    const halves = key.startsWith(CURSOR) ? this.#cursors : key.startsWith(SUBSCRIPTION) ? this.#records : undefined
    const known = halves?.get(key.slice(CURSOR.length))
    return known !== undefined && known.sequence >= sequence
  }

  /** Forgets the subscriptions that the complete history does not contain. Returns their ids. */
  retain(keys: ReadonlySet<string>): readonly string[] {
    const gone = [...this.#records.keys()].filter((id) => !keys.has(subscriptionKey(id)))
    for (const id of gone) this.#records.delete(id)
    for (const id of this.#cursors.keys()) if (!keys.has(cursorKey(id))) this.#cursors.delete(id)
    return gone
  }

  get(id: string): KnownSubscription | undefined {
    const record = this.#records.get(id)
    const cursor = this.#cursors.get(id)
    if (record?.value === undefined || cursor?.value === undefined) return undefined
    return {
      id,
      record: record.value,
      recordSequence: record.sequence,
      cursor: cursor.value,
      cursorSequence: cursor.sequence,
    }
  }

  *all(): Iterable<KnownSubscription> {
    for (const id of this.#records.keys()) {
      const known = this.get(id)
      if (known !== undefined) yield known
    }
  }

  /** Returns the number of subscriptions of an owner. */
  countOf(owner: string): number {
    let count = 0
    for (const { value } of this.#records.values()) if (value?.owner === owner) count++
    return count
  }
}

function put<T>(map: Map<string, Half<T>>, id: string, sequence: number, value: T | undefined): boolean {
  const known = map.get(id)
  if (known !== undefined && known.sequence >= sequence) return false
  map.set(id, { sequence, value })
  return true
}
