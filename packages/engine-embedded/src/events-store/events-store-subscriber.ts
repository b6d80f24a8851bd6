import type { EventsStoreStart, OpenSubscription, StoredEventListener } from '@signalbox/broker-core/engine'
import { isBrokerError } from '@signalbox/broker-core/engine'

import type { Follower, EventsStoreFeed } from './events-store-feed.ts'
import { EventsStoreCursor, startOf } from './events-store-feed.ts'
import type { EventsStoreItem } from './events-store-reader.ts'

/** The number of entries that a listener gets without a pause before other subscribers continue. */
const BURST = 256

/** A subscription without a group: it gets every entry in order, each after its listener handled the previous one. */
export class EventsStoreSubscriber implements Follower {
  readonly cursor: EventsStoreCursor
  readonly #feed: EventsStoreFeed
  readonly #listener: StoredEventListener
  readonly #subscription: OpenSubscription
  #busy = false
  #scheduled = false

  constructor(
    feed: EventsStoreFeed,
    start: EventsStoreStart,
    listener: StoredEventListener,
    subscription: OpenSubscription,
  ) {
    this.#feed = feed
    this.cursor = new EventsStoreCursor(feed, startOf(feed, start))
    this.#listener = listener
    this.#subscription = subscription
  }

  appended(item: EventsStoreItem): void {
    if (this.#busy || this.#scheduled) return
    if (this.cursor.takes(item)) this.#deliver(item)
    else this.pump()
  }

  pump(): void {
    if (this.#busy || this.#scheduled || this.#subscription.ended) return
    this.#scheduled = true
    this.#feed.context.turns.add(() => {
      this.#scheduled = false
      this.#burst()
    })
  }

  #burst(): void {
    try {
      for (let i = 0; i < BURST; i++) {
        if (this.#busy || this.#subscription.ended) return
        const item = this.cursor.next()
        if (!item) return
        this.#deliver(item)
      }
      this.pump()
    } catch (error) {
      this.#readFailed(error)
    }
  }

  #readFailed(error: unknown): void {
    // While the store is reopened the subscription waits; `pump` is called when the store is open.
    if (isBrokerError(error, 'ENGINE_UNAVAILABLE') && !this.#feed.damaged) return
    this.#subscription.end(toError(error))
  }

  #deliver(item: EventsStoreItem): void {
    this.#feed.count(item)
    let done: void | Promise<void>
    try {
      done = this.#listener(item.event)
    } catch (error) {
      this.#subscription.end(toError(error))
      return
    }
    if (!(done instanceof Promise)) return
    this.#busy = true
    done.then(
      () => {
        this.#busy = false
        this.#continue()
      },
      // Continuing would leave a gap, and repeating would deliver twice: the subscription ends with the error.
      (error: unknown) => this.#subscription.end(toError(error)),
    )
  }

  /**
   * Delivers the next entry immediately if it is in memory; otherwise takes its place among the subscribers that read
   * from disk.
   */
  #continue(): void {
    if (this.cursor.behind) {
      this.pump()
      return
    }
    if (this.#subscription.ended) return
    const item = this.cursor.next()
    if (!item) return
    this.#deliver(item)
    // A listener that returned a promise has already waited, so the next entry follows directly.
    this.pump()
  }

  restart(): void {
    this.cursor.restart()
  }
}

export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
