import { isBrokerError } from '@signalbox/broker-core'

import { unknownSubscription } from '../errors.ts'
import type { KnownSubscription, SubscriptionIndex } from './subscription-index.ts'
import { cursorKey, subscriptionKey } from './subscription-index.ts'
import type { CursorRecord, SubscriptionRecord } from './subscription-record.ts'
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
