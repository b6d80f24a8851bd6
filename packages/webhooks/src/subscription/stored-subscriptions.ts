import { isBrokerError } from '@signalbox/broker-core'
import type { WebhookSubscription } from '@signalbox/broker-core/ports'

import { deadLetterQueueOf } from '../delivery/dead-letters.ts'
import { unknownSubscription } from '../errors.ts'
import type { CursorRecord, SubscriptionRecord } from './subscription-record.ts'
import { readCursor, readSubscription } from './subscription-record.ts'
import type { LogEntry, WebhookLog } from './webhook-log.ts'

/** The attempts of a conditional write, while other nodes write too. */
const WRITE_ATTEMPTS = 5

/** The subscriptions in the log, which all nodes read and write. */
export class StoredSubscriptions {
  readonly #log: WebhookLog
  readonly #index: SubscriptionIndex
  readonly #apply: (entry: LogEntry) => void

  /** @param apply Called with each entry that was written or read here, so that the index has it at once */
  constructor(log: WebhookLog, index: SubscriptionIndex, apply: (entry: LogEntry) => void) {
    this.#log = log
    this.#index = index
    this.#apply = apply
  }

  /** Returns a subscription; of one owner, or of any. @throws WebhookError SUBSCRIPTION_UNKNOWN */
  async find(id: string, owner?: string): Promise<KnownSubscription> {
    // A node that has not read a new subscription yet asks the store.
    if (this.#index.get(id) === undefined) await this.refresh(id)
    const known = this.#index.get(id)
    if (known === undefined || (owner !== undefined && known.record.owner !== owner)) throw unknownSubscription(id)
    return known
  }

  /** Reads the newest entries of a subscription from the store. */
  async refresh(id: string): Promise<void> {
    for (const key of [cursorKey(id), subscriptionKey(id)]) {
      const entry = await this.#log.last(key)
      if (entry !== undefined) this.#apply(entry)
    }
  }

  /** Returns the sequence of the last entry of a subscription's record; 0 if there is none. */
  lastSequence(id: string): Promise<number> {
    return this.#lastSequence(subscriptionKey(id))
  }

  /**
   * Stores a new subscription.
   * @param last The sequence of the last entry of the record; 0 if there is none
   * @throws BrokerError CONFLICT if another node has written it
   */
  async add(id: string, record: SubscriptionRecord, cursor: CursorRecord, last: number): Promise<KnownSubscription> {
    // A subscription with this id may have ended a moment ago.
    await this.#write(cursorKey(id), cursor, await this.#lastSequence(cursorKey(id)))
    await this.#write(subscriptionKey(id), record, last)
    return this.find(id)
  }

  /** Replaces the record of a subscription, unless it has changed meanwhile. @throws BrokerError CONFLICT */
  replace({ id, recordSequence }: KnownSubscription, record: SubscriptionRecord): Promise<void> {
    return this.#write(subscriptionKey(id), record, recordSequence)
  }

  /** Changes the record of a subscription. @throws WebhookError SUBSCRIPTION_UNKNOWN */
  change(id: string, change: (record: SubscriptionRecord) => SubscriptionRecord): Promise<KnownSubscription> {
    return this.#repeat(id, (known) => this.replace(known, change(known.record)))
  }

  /** Changes the position of a subscription. @throws WebhookError SUBSCRIPTION_UNKNOWN */
  move(id: string, move: (known: KnownSubscription) => CursorRecord): Promise<KnownSubscription> {
    return this.#repeat(id, (known) => this.#write(cursorKey(id), move(known), known.cursorSequence))
  }

  async remove(id: string): Promise<void> {
    await this.#write(subscriptionKey(id), undefined)
    await this.#write(cursorKey(id), undefined)
  }

  /** Writes again if another node has written meanwhile. */
  async #repeat(id: string, write: (known: KnownSubscription) => Promise<void>): Promise<KnownSubscription> {
    for (let attempt = 1; ; attempt++) {
      const known = await this.find(id)
      try {
        await write(known)
        return await this.find(id)
      } catch (error) {
        if (!isBrokerError(error, 'CONFLICT') || attempt === WRITE_ATTEMPTS) throw error
        await this.refresh(id)
      }
    }
  }

  async #lastSequence(key: string): Promise<number> {
    return (await this.#log.last(key))?.sequence ?? 0
  }

  async #write(key: string, value: object | undefined, expected?: number): Promise<void> {
    this.#apply({ key, sequence: await this.#log.write(key, value, expected), value })
  }
}

const SUBSCRIPTION = 's/'
const CURSOR = 'c/'

function subscriptionKey(id: string): string {
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

  /** Returns the number of subscriptions for which a condition is true. */
  count(where: (record: SubscriptionRecord) => boolean): number {
    let count = 0
    for (const { value } of this.#records.values()) if (value !== undefined && where(value)) count++
    return count
  }
}

function put<T>(map: Map<string, Half<T>>, id: string, sequence: number, value: T | undefined): boolean {
  const known = map.get(id)
  if (known !== undefined && known.sequence >= sequence) return false
  map.set(id, { sequence, value })
  return true
}

export function viewOf({ id, record, cursor }: KnownSubscription): WebhookSubscription {
  const { owner, type, channel, endpoint, format, filter, notes, ordered, createdMs, expiresMs } = record
  const failing = record.state === 'active' ? cursor.failing : undefined
  const reason = record.reason ?? failing?.reason
  return {
    id,
    owner,
    type,
    channel,
    endpoint,
    format,
    filter,
    notes,
    ordered,
    state: failing === undefined ? record.state : 'failing',
    reason,
    createdMs,
    expiresMs,
    next: type === 'events_store' ? cursor.next : undefined,
    deadLetterQueue: deadLetterQueueOf(id),
  }
}
