import { unavailable } from '@signalbox/broker-core/engine'

import { GROUP_POSITIONS } from '../store/damage.ts'
import type { Store } from '../store/store.ts'
import type { GroupPosition } from '../writer/operations.ts'
import type { EventsStoreFeed } from './events-store-feed.ts'
import type { EventsStoreGroup } from './events-store-subscribers.ts'

/**
 * The time that a changed position waits to be stored, in ms: the positions of all groups share one operation, so that
 * entries cost no separate syncs. A crash repeats the entries of this time.
 */
const STORE_MS = 100
/** The wait after a failure, in ms. */
const RETRY_MS = 1_000
/** The longest interval at which the positions of groups with subscribers are marked as used, in ms. */
const USED_MS = 60 * 60_000

/** A durable group that has subscribers. */
export interface DurableGroup {
  readonly name: string
  readonly feed: EventsStoreFeed
  readonly members: EventsStoreGroup
}

/** Stores the positions of durable groups while they change. */
export class DurablePositions {
  readonly #store: Store
  readonly #now: () => number
  readonly #live = new Set<DurableGroup>()
  readonly #changed = new Set<DurableGroup>()
  /** Positions of groups without subscribers that could not be stored yet. */
  #left: GroupPosition[] = []
  #timer: NodeJS.Timeout | undefined
  readonly #marking: NodeJS.Timeout
  #closed = false

  /** @param keptMs The time for which the position of a group without subscribers is kept */
  constructor(store: Store, now: () => number, keptMs: number) {
    this.#store = store
    this.#now = now
    this.#marking = setInterval(() => this.#save([...this.#live], true), Math.min(USED_MS, keptMs / 4)).unref()
  }

  /**
   * Returns the stored position of a group; stores `start` if it has none. Undefined if the channel was deleted
   * meanwhile. `apply` runs before any later event is handled.
   * @throws BrokerError GROUP_LIMIT
   */
  async join<T>(
    { name: channel, channel: live }: EventsStoreFeed,
    group: string,
    start: number,
    apply: (position: number) => T,
  ): Promise<T | undefined> {
    const refusal = this.#store.damage.partRefusal(GROUP_POSITIONS)
    if (refusal) throw refusal
    if (this.#closed) throw unavailable('it is closed')
    const operation = { kind: 'joinGroup', channel, channelId: live?.id ?? 0, group, start, now: this.#now() } as const
    return this.#store.submit('joinGroup', operation, 0, ({ position }) =>
      position === undefined ? undefined : apply(position),
    )
  }

  /** Starts to store the positions of a group. */
  add(group: DurableGroup): void {
    this.#live.add(group)
  }

  /** Notes that entries of the group were handled. */
  changed(group: DurableGroup): void {
    this.#changed.add(group)
    this.#schedule(STORE_MS)
  }

  /** Stores the last position of a group whose last subscriber left. */
  remove(group: DurableGroup): void {
    this.#live.delete(group)
    this.#changed.delete(group)
    this.#save([group], true)
  }

  /** Stores every position again after the store was read again: the last writes may be lost. */
  reopened(): void {
    for (const group of this.#live) this.changed(group)
  }

  #schedule(milliseconds: number): void {
    if (this.#closed) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const groups = [...this.#changed]
      this.#changed.clear()
      this.#save(groups, false)
    }, milliseconds).unref()
  }

  #save(groups: readonly DurableGroup[], used: boolean): void {
    const positions = this.#left.splice(0)
    for (const { name, feed, members } of groups) {
      const { channel } = feed
      if (!channel) continue
      positions.push({ channel: feed.name, channelId: channel.id, group: name, position: members.handledTo, used })
    }
    if (positions.length === 0 || this.#store.damage.partRefusal(GROUP_POSITIONS)) return
    const operation = { kind: 'storePositions', now: this.#now(), positions } as const
    this.#store
      .submit('storePositions', operation, 0, () => {})
      .catch(() => {
        // Calls of users report the problem. Groups with subscribers have newer positions by then.
        for (const group of groups) if (this.#live.has(group)) this.#changed.add(group)
        const live = new Set([...this.#live].map(({ name, feed }) => `${feed.name} ${name}`))
        this.#left.push(...positions.filter(({ channel, group }) => !live.has(`${channel} ${group}`)))
        this.#schedule(RETRY_MS)
      })
  }

  /** Ends the timers. Call it after the last group was removed. */
  close(): void {
    this.#closed = true
    clearInterval(this.#marking)
    clearTimeout(this.#timer)
  }
}
