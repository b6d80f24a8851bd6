import type { EventsStoreStart, OpenSubscription, StoredEvent } from '@signalbox/broker-core/engine'
import { isBrokerError } from '@signalbox/broker-core/engine'

import type { Follower, EventsStoreFeed } from './events-store-feed.ts'
import { EventsStoreCursor } from './events-store-feed.ts'
import type { EventsStoreItem } from './events-store-reader.ts'

export type StoredEventListener = (event: StoredEvent) => void | Promise<void>

/** Entries given to a listener that does not wait, before others get their turn. */
const BURST = 256

/** A subscription of its own: every entry, one after the other, each when the listener is done with the one before. */
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
    this.cursor = new EventsStoreCursor(feed, start)
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
    // While the store is being opened again it waits; it is pumped when the store is back.
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
      // Going on would leave a gap, and trying again would repeat: it ends, and says why.
      (error: unknown) => this.#subscription.end(toError(error)),
    )
  }

  /** The next entry at once when it is in memory, otherwise in turn with the others who read from disk. */
  #continue(): void {
    if (this.cursor.behind) {
      this.pump()
      return
    }
    if (this.#subscription.ended) return
    const item = this.cursor.next()
    if (!item) return
    this.#deliver(item)
    // A listener that waited before need not wait again: nobody else would fetch the next one then.
    this.pump()
  }

  restart(): void {
    this.cursor.restart()
  }
}

export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
