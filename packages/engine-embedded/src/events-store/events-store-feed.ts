import type { EventsStoreStart } from '@signalbox/broker-core/engine'

import type { ChannelRegistry, LiveChannel } from '../channel-registry.ts'
import type { EventsStoreItem, EventsStoreReader } from './events-store-reader.ts'

/** The number of entries that a follower reads from disk at once. */
const PAGE = 64
const PAGE_BYTES = 1024 * 1024
/**
 * The number of newest entries kept in memory while there is a follower, so that a follower slightly behind does not
 * read from disk.
 */
const RECENT = 256
const RECENT_BYTES = 1024 * 1024

/** The pages that followers can share, and the longest time after which they can, in ms. */
const SHARED_PAGES = 8
const SHARED_MS = 1_000

/** A page that a follower has read from disk. Only the followers that use it keep it in memory. */
interface SharedPage {
  readonly items: WeakRef<readonly EventsStoreItem[]>
  readonly first: number
  readonly last: number
  readonly readAt: number
}

/** A follower gets every entry of a channel in order: a subscription, or a group of subscriptions. */
export interface Follower {
  readonly cursor: EventsStoreCursor
  /** Receives a new entry. The follower may handle it now, or reach it later through its cursor. */
  appended(item: EventsStoreItem): void
  /** Delivers entries, if there are any. */
  pump(): void
  /** Handles the deletion of the channel. */
  restart(): void
}

export interface FeedContext {
  readonly registry: ChannelRegistry
  readonly reader: EventsStoreReader
  readonly turns: Turns
  readonly now: () => number
}

/** The part of an events store that is in memory while it has followers. */
export class EventsStoreFeed {
  readonly name: string
  readonly context: FeedContext
  readonly followers = new Set<Follower>()
  readonly #recent: EventsStoreItem[] = []
  #recentBytes = 0
  #shared: SharedPage[] = []

  constructor(name: string, context: FeedContext) {
    this.name = name
    this.context = context
  }

  get channel(): LiveChannel | undefined {
    return this.context.registry.get('events_store', this.name)
  }

  get damaged(): boolean {
    return this.context.reader.damaged(this.name)
  }

  append(item: EventsStoreItem): void {
    this.#recent.push(item)
    this.#recentBytes += item.size
    while (this.#recent.length > RECENT || (this.#recentBytes > RECENT_BYTES && this.#recent.length > 1)) {
      this.#recentBytes -= this.#recent.shift()?.size ?? 0
    }
    for (const follower of this.followers) follower.appended(item)
  }

  /** Returns an entry if it is in memory. */
  recent(sequence: number): EventsStoreItem | undefined {
    const first = this.#recent[0]?.event.sequence
    const item = first === undefined ? undefined : this.#recent[sequence - first]
    return item?.event.sequence === sequence ? item : undefined
  }

  /**
   * Returns a page from disk that has the first entry after a sequence, or an empty one if there is none. Followers that
   * catch up together share their pages: reading an entry of 1 KiB takes 2 µs.
   */
  page(channel: LiveChannel, position: number): readonly EventsStoreItem[] {
    const now = performance.now()
    for (const { items, first, last, readAt } of this.#shared) {
      if (position + 1 < first || position >= last || now - readAt > SHARED_MS) continue
      const page = items.deref()
      if (page !== undefined) return page
    }
    const read = this.context.reader.from(channel, position + 1, PAGE, { maxBytes: PAGE_BYTES })
    const [first, last] = [read[0]?.event.sequence, read.at(-1)?.event.sequence]
    if (this.followers.size > 1 && first !== undefined && last !== undefined) {
      this.#shared = [
        { items: new WeakRef(read), first, last, readAt: now },
        ...this.#shared.slice(0, SHARED_PAGES - 1),
      ]
    }
    return read
  }

  /** Returns whether compaction removed an entry that is still in memory, because a later one has its key. */
  isReplaced({ event: { key, sequence } }: EventsStoreItem): boolean {
    const { channel } = this
    if (key === undefined || channel?.compacted !== true) return false
    return !this.context.reader.isLastOfKey(channel, key, sequence)
  }

  count(item: EventsStoreItem): void {
    const { channel } = this
    if (channel) this.context.registry.delivered(channel, 1, item.size)
  }

  pump(): void {
    for (const follower of this.followers) follower.pump()
  }

  /** Starts again at sequence 1 after the channel was deleted. */
  restart(): void {
    this.#recent.length = 0
    this.#recentBytes = 0
    this.#shared = []
    for (const follower of this.followers) follower.restart()
  }
}

/** The start of a cursor. */
export interface CursorStart {
  /** The sequence before the first entry. */
  readonly position: number
  /** The time before which entries are skipped, in ms since the epoch. */
  readonly notBefore: number
}

/** A position in an events store. Reads entries near the end from memory, and earlier ones from disk, page by page. */
export class EventsStoreCursor {
  readonly #feed: EventsStoreFeed
  /** The sequence of the last returned entry. */
  #position: number
  /** The time before which entries are skipped, in ms since the epoch. */
  #notBefore: number
  #page: readonly EventsStoreItem[] = []
  #next = 0

  constructor(feed: EventsStoreFeed, { position, notBefore }: CursorStart) {
    this.#feed = feed
    this.#position = position
    this.#notBefore = notBefore
  }

  get position(): number {
    return this.#position
  }

  /** Returns whether this entry is the next one, and if so moves past it. */
  takes({ event }: EventsStoreItem): boolean {
    if (this.#next < this.#page.length || event.sequence !== this.#position + 1) return false
    this.#position = event.sequence
    return this.#wanted(event.timestamp)
  }

  /** Returns the next entry and moves past it; undefined if there is none. */
  next(): EventsStoreItem | undefined {
    for (;;) {
      const item = this.#read()
      if (!item) return undefined
      this.#position = item.event.sequence
      if (this.#wanted(item.event.timestamp)) return item
    }
  }

  /** `true` if there may be a next entry. */
  get hasMore(): boolean {
    return this.#next < this.#page.length || this.#more
  }

  /** `true` if the next entry, if any, must be read from disk. */
  get behind(): boolean {
    return this.#next >= this.#page.length && this.#more && !this.#feed.recent(this.#position + 1)
  }

  get #more(): boolean {
    return this.#position < (this.#feed.channel?.lastSequence ?? 0)
  }

  #read(): EventsStoreItem | undefined {
    const read = this.#page[this.#next]
    if (read) {
      this.#next++
      return read
    }
    const { channel } = this.#feed
    if (!channel || !this.#more) return undefined
    const recent = this.#feed.recent(this.#position + 1)
    if (recent) return recent
    this.#page = this.#feed.page(channel, this.#position)
    // The first entry, except on a page of another follower.
    const next = this.#page.findIndex(({ event }) => event.sequence > this.#position)
    this.#next = next + 1
    // Retention removed every entry up to the end.
    if (next < 0) this.#position = channel.lastSequence
    return this.#page[next]
  }

  #wanted(timestamp: number): boolean {
    if (timestamp < this.#notBefore) return false
    this.#notBefore = 0
    return true
  }

  restart(): void {
    this.#position = 0
    this.#page = []
    this.#next = 0
  }
}

/** Returns the start of a cursor in a channel as it is now. */
export function startOf({ channel, context }: EventsStoreFeed, start: EventsStoreStart): CursorStart {
  const last = channel?.lastSequence ?? 0
  const since = (timestamp: number): CursorStart => {
    const first = channel && context.reader.firstSince(channel, timestamp)
    return { position: first === undefined ? last : first - 1, notBefore: timestamp }
  }
  switch (start.from) {
    case 'new':
      return { position: last, notBefore: 0 }
    case 'first':
      return { position: 0, notBefore: 0 }
    case 'last': {
      const [newest] = channel ? context.reader.latest(channel, 1) : []
      return { position: newest ? newest.event.sequence - 1 : last, notBefore: 0 }
    }
    case 'sequence':
      return { position: start.sequence - 1, notBefore: 0 }
    case 'time':
      return since(start.timestamp)
    default:
      return since(context.now() - start.milliseconds)
  }
}

/** The time for which subscribers that catch up may block the event loop without a pause, in ms. */
const TURN_MS = 2

/** Runs tasks in the order of their addition, for a few milliseconds at a time. */
export class Turns {
  #tasks: (() => void)[] = []
  #scheduled = false

  add(task: () => void): void {
    this.#tasks.push(task)
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#run())
  }

  #run(): void {
    const end = performance.now() + TURN_MS
    let done = 0
    while (done < this.#tasks.length && performance.now() < end) this.#tasks[done++]?.()
    this.#tasks = this.#tasks.slice(done)
    this.#scheduled = this.#tasks.length > 0
    if (this.#scheduled) setImmediate(() => this.#run())
  }
}
