import type { BrokerHandle, ChannelInfo, ChannelName, ChannelType } from '@signalbox/broker-core'
import { channelListMatcher, inTurns } from '@signalbox/broker-core/internal'

import type { ChannelIndex } from './channel-index.ts'
import type { ChannelSort, Order, Ranked } from './channel-order.ts'
import { cursorOfRank, rankOfCursor, rankOrder, valueOf } from './channel-order.ts'
import { FirstInOrder } from './first-in-order.ts'

export interface ChannelSearch {
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

export interface FoundChannels {
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
    const names = await handle.channels.names(type === undefined ? {} : { type })
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
