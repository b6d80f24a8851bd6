import type { EventsStoreStart, OpenSubscription, StoredEventListener } from '@signalbox/broker-core/engine'
import { isBrokerError } from '@signalbox/broker-core/engine'

import type { CursorStart, EventsStoreFeed, Follower } from './events-store-feed.ts'
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

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/**
 * The wait until a group's only subscriber gets a rejected entry again, in ms. It doubles with each failure, up to the
 * second value.
 */
const FIRST_RETRY_MS = 100
const LAST_RETRY_MS = 5_000

interface Member {
  readonly listener: StoredEventListener
  readonly subscription: OpenSubscription
  /** `true` while its listener handles an entry of a channel that was deleted. */
  outdated: boolean
  /** The entry that its listener is handling. */
  item: EventsStoreItem | undefined
  /** The number of consecutive rejections by its listener. */
  failures: number
  /** The time until which it gets no entry, because its listener rejected one; by the monotonic clock. */
  pausedUntil: number
}

/** An entry to deliver again, and the subscriber that failed to handle it. */
interface Returned {
  readonly item: EventsStoreItem
  readonly from: Member
}

/** Subscribers that share one position: each entry goes to one of them. */
export class EventsStoreGroup implements Follower {
  readonly cursor: EventsStoreCursor
  readonly #feed: EventsStoreFeed
  readonly #members = new Set<Member>()
  #returned: Returned[] = []
  #scheduled = false
  #retry: NodeJS.Timeout | undefined
  readonly #onHandled: () => void

  /** @param onHandled Called when a listener has handled an entry */
  constructor(feed: EventsStoreFeed, start: CursorStart, onHandled: () => void = () => {}) {
    this.#feed = feed
    this.cursor = new EventsStoreCursor(feed, start)
    this.#onHandled = onHandled
  }

  /** The sequence up to which every entry was handled. */
  get handledTo(): number {
    let first = this.#returned[0]?.item.event.sequence ?? Infinity
    for (const { item, outdated } of this.#members) {
      if (item && !outdated) first = Math.min(first, item.event.sequence)
    }
    return first === Infinity ? this.cursor.position : first - 1
  }

  get size(): number {
    return this.#members.size
  }

  join(listener: StoredEventListener, subscription: OpenSubscription): void {
    this.#members.add({ listener, subscription, item: undefined, outdated: false, failures: 0, pausedUntil: 0 })
    this.pump()
  }

  leave(subscription: OpenSubscription): void {
    for (const member of this.#members) {
      if (member.subscription !== subscription) continue
      this.#members.delete(member)
      if (member.item) this.#deliverAgain(member.item, member)
    }
    if (this.#members.size === 0) clearTimeout(this.#retry)
    else this.pump()
  }

  appended(): void {
    if (!this.#scheduled) this.#deliverAll()
  }

  pump(): void {
    if (this.#scheduled || this.#members.size === 0) return
    this.#scheduled = true
    this.#feed.context.turns.add(() => {
      this.#scheduled = false
      this.#deliverAll()
    })
  }

  #deliverAll(): void {
    try {
      // Each subscriber gets at most one entry per round, so that listeners that return immediately do not starve
      // others.
      for (const member of Array.from(this.#members)) {
        if (!this.#idle(member)) continue
        const item = this.#nextFor(member)
        if (item) this.#deliver(member, item)
      }
      if (this.#canGoOn()) this.pump()
    } catch (error) {
      if (isBrokerError(error, 'ENGINE_UNAVAILABLE') && !this.#feed.damaged) return
      for (const { subscription } of Array.from(this.#members)) subscription.end(toError(error))
    }
  }

  #idle(member: Member): boolean {
    return !member.item && !member.subscription.ended && member.pausedUntil <= performance.now()
  }

  /** Returns the next entry for a subscriber. While a group is busy, later entries may replace those that wait for it. */
  #nextFor(member: Member): EventsStoreItem | undefined {
    for (;;) {
      const item = this.#following(member)
      if (!item || !this.#feed.isReplaced(item)) return item
      this.#onHandled()
    }
  }

  /** Returned entries come first, and go to a different subscriber if there is one. */
  #following(member: Member): EventsStoreItem | undefined {
    const at = this.#returned.findIndex(({ from }) => from !== member || this.#members.size === 1)
    if (at !== -1) return this.#returned.splice(at, 1)[0]?.item
    return this.#returned.length > 0 && this.#members.size === 1 ? undefined : this.cursor.next()
  }

  #canGoOn(): boolean {
    const idle = [...this.#members].some((member) => this.#idle(member))
    return idle && (this.#returned.length > 0 || this.cursor.hasMore)
  }

  #deliver(member: Member, item: EventsStoreItem): void {
    // The subscriber that was served last comes last in the next round.
    this.#members.delete(member)
    this.#members.add(member)
    member.item = item
    member.outdated = false
    this.#feed.count(item)
    let done: void | Promise<void>
    try {
      done = member.listener(item.event)
    } catch (error) {
      done = Promise.reject(toError(error))
    }
    if (done instanceof Promise) {
      done.then(
        () => this.#handled(member, item),
        () => this.#rejected(member, item),
      )
    } else {
      this.#settle(member, item)
    }
  }

  #settle(member: Member, item: EventsStoreItem): boolean {
    // Its subscription was closed meanwhile: the entry went to another subscriber.
    if (member.item !== item || !this.#members.has(member)) return false
    member.item = undefined
    member.failures = 0
    this.#onHandled()
    return true
  }

  #handled(member: Member, item: EventsStoreItem): void {
    if (this.#settle(member, item) && !this.#scheduled) this.#deliverAll()
  }

  #rejected(member: Member, item: EventsStoreItem): void {
    const { failures } = member
    if (!this.#settle(member, item)) return
    const pauseMs = Math.min(FIRST_RETRY_MS * 2 ** failures, LAST_RETRY_MS)
    member.failures = failures + 1
    member.pausedUntil = performance.now() + pauseMs
    this.#deliverAgain(item, member)
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => this.pump(), pauseMs + 1).unref()
    this.pump()
  }

  #deliverAgain(item: EventsStoreItem, from: Member): void {
    if (from.outdated) return
    this.#returned.push({ item, from })
    this.#returned.sort((a, b) => a.item.event.sequence - b.item.event.sequence)
  }

  restart(): void {
    this.#returned = []
    for (const member of this.#members) member.outdated = member.item !== undefined
    this.cursor.restart()
  }
}
