import { Buffer } from 'node:buffer'

import { CHANNEL_TYPES } from '@signalbox/broker-core'
import type { BrokerHandle, ChannelInfo, ChannelName, ChannelType } from '@signalbox/broker-core'
import { channelListMatcher, inTurns } from '@signalbox/broker-core/internal'

import { invalidCursor } from '../paging.ts'
import type { ChannelIndex } from './channel-index.ts'

interface ChannelSearch {
  readonly type: ChannelType | undefined
  /** The whole name. @default every name */
  readonly name?: string | undefined
  /** A glob if it has `*` or `?`; otherwise a part of the name, in upper or lower case. */
  readonly search: string
  readonly sort: ChannelSort
  readonly order: Order
  readonly limit: number
  readonly cursor: string | undefined
}

interface FoundChannels {
  readonly channels: readonly ChannelInfo[]
  readonly nextCursor: string | null
  /** The number of channels on all pages. */
  readonly total: number
  /** The time of the values, in ms since the epoch. */
  readonly asOf: number
  readonly complete: boolean
}

/**
 * Returns a page of the channels that match. The time that it takes grows with the number of channels,
 * but it blocks the event loop only for a few milliseconds at a time.
 * @throws ManagementError PARAMETER_INVALID for a cursor of another order
 */
export async function searchChannels(
  handle: BrokerHandle,
  index: ChannelIndex,
  search: ChannelSearch,
): Promise<FoundChannels> {
  const { sort, type } = search
  if (sort === 'name') {
    const names = await handle.channels.names({ type })
    const page = await pageOf(names, () => 0, search)
    const channels = await handle.channels.states(page.found.map(({ channel }) => channel))
    return { channels, nextCursor: page.nextCursor, total: page.total, asOf: Date.now(), complete: true }
  }
  const { channels: all, asOf, complete } = await index.read(handle)
  const page = await pageOf(all, (channel) => valueOf(sort, channel), search)
  const channels = page.found.map(({ channel }) => channel)
  return { channels, nextCursor: page.nextCursor, total: page.total, asOf, complete }
}

async function pageOf<Channel extends ChannelName>(
  all: readonly Channel[],
  value: (channel: Channel) => number,
  { type, name, search, sort, order, limit, cursor }: ChannelSearch,
): Promise<{ found: readonly Ranked<Channel>[]; nextCursor: string | null; total: number }> {
  const after = cursor === undefined ? undefined : rankOfCursor(sort, order, cursor)
  const compare = rankOrder(order)
  const matches = nameMatcher(search)
  const first = new FirstInOrder<Ranked<Channel>>(limit, compare)
  let total = 0
  let following = 0
  await inTurns(all, (channel) => {
    if ((type !== undefined && channel.type !== type) || (name !== undefined && channel.name !== name)) return
    if (!matches(channel.name)) return
    total++
    const ranked = { channel, value: value(channel) }
    if (after !== undefined && compare(ranked, after) <= 0) return
    following++
    first.add(ranked)
  })
  const found = first.list()
  const last = found.at(-1)
  const more = last !== undefined && following > found.length
  return { found, nextCursor: more ? cursorOfRank(sort, order, last) : null, total }
}

function nameMatcher(search: string): (name: string) => boolean {
  if (/[*?]/.test(search)) return channelListMatcher(search)
  if (search === '') return () => true
  const part = search.toLowerCase()
  return (name) => name.toLowerCase().includes(part)
}

/** The orders of the channel list. `name` needs no state of the channels. */
export const CHANNEL_SORTS = [
  'name',
  'depth',
  'in_flight',
  'delayed',
  'dead_lettered',
  'bytes',
  'messages_in',
  'messages_out',
  'subscribers',
  'last_activity',
] as const

export type ChannelSort = (typeof CHANNEL_SORTS)[number]

type Order = 'asc' | 'desc'

/** A channel with the value that it is sorted by. */
interface Ranked<Channel extends ChannelName> {
  readonly channel: Channel
  readonly value: number
}

const VALUES: Readonly<Record<Exclude<ChannelSort, 'name'>, (channel: ChannelInfo) => number>> = {
  depth: (channel) => depthOf(channel) ?? 0,
  in_flight: ({ queue }) => queue?.inFlight ?? 0,
  delayed: ({ queue }) => queue?.delayed ?? 0,
  dead_lettered: ({ queue }) => queue?.deadLettered ?? 0,
  bytes: ({ queue, eventsStore }) => queue?.bytes ?? eventsStore?.bytes ?? 0,
  messages_in: ({ incoming }) => incoming,
  messages_out: ({ outgoing }) => outgoing,
  subscribers: ({ subscribers }) => subscribers,
  last_activity: ({ lastActivity }) => lastActivity,
}

/** Returns the waiting messages of a queue, or the entries of an events store. */
export function depthOf({ queue, eventsStore }: ChannelInfo): number | undefined {
  return queue?.waiting ?? eventsStore?.entries
}

/** Returns the value that a channel is sorted by. */
function valueOf(sort: Exclude<ChannelSort, 'name'>, channel: ChannelInfo): number {
  return VALUES[sort](channel)
}

type Compare = (a: Ranked<ChannelName>, b: Ranked<ChannelName>) => number

/** Compares by value, then by name and type, so that every channel has one place. */
function rankOrder(order: Order): Compare {
  const sign = order === 'asc' ? 1 : -1
  return (a, b) => sign * (a.value === b.value ? byName(a.channel, b.channel) : a.value < b.value ? -1 : 1)
}

function byName(a: ChannelName, b: ChannelName): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1
  if (a.type === b.type) return 0
  return a.type < b.type ? -1 : 1
}

/** Encodes the last channel of a page with its order, so that a cursor of another order is refused. */
function cursorOfRank(sort: ChannelSort, order: Order, { value, channel }: Ranked<ChannelName>): string {
  return Buffer.from(JSON.stringify([sort, order, value, channel.type, channel.name])).toString('base64url')
}

/** Decodes a cursor. @throws ManagementError PARAMETER_INVALID if no page of this order returns it */
function rankOfCursor(sort: ChannelSort, order: Order, cursor: string): Ranked<ChannelName> {
  const [forSort, forOrder, value, type, name] = parts(cursor)
  const known = CHANNEL_TYPES.find((each) => each === type)
  if (forSort !== sort || forOrder !== order || known === undefined) throw invalidCursor()
  if (typeof value !== 'number' || typeof name !== 'string') throw invalidCursor()
  return { value, channel: { type: known, name } }
}

function parts(cursor: string): readonly unknown[] {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return Array.isArray(parsed) ? parsed : []
  } catch {
    return []
  }
}

/** The first items of a list in an order, without sorting the list: a page of a long list. */
export class FirstInOrder<Item> {
  readonly #limit: number
  readonly #compare: (a: Item, b: Item) => number
  readonly #items: Item[] = []

  constructor(limit: number, compare: (a: Item, b: Item) => number) {
    this.#limit = limit
    this.#compare = compare
  }

  add(item: Item): void {
    const items = this.#items
    const last = items.at(-1)
    if (items.length === this.#limit && last !== undefined && this.#compare(last, item) <= 0) return
    let from = 0
    let to = items.length
    while (from < to) {
      const middle = (from + to) >>> 1
      const other = items[middle]
      if (other !== undefined && this.#compare(other, item) <= 0) from = middle + 1
      else to = middle
    }
    items.splice(from, 0, item)
    if (items.length > this.#limit) items.pop()
  }

  list(): readonly Item[] {
    return this.#items
  }
}
