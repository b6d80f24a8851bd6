import { Buffer } from 'node:buffer'

import type { ChannelInfo, ChannelName } from '@signalbox/broker-core'
import { CHANNEL_TYPES } from '@signalbox/broker-core'

import { invalidCursor } from '../paging.ts'

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

export type Order = 'asc' | 'desc'

/** A channel with the value that it is sorted by. */
export interface Ranked<Channel extends ChannelName> {
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
export function valueOf(sort: Exclude<ChannelSort, 'name'>, channel: ChannelInfo): number {
  return VALUES[sort](channel)
}

type Compare = (a: Ranked<ChannelName>, b: Ranked<ChannelName>) => number

/** Compares by value, then by name and type, so that every channel has one place. */
export function rankOrder(order: Order): Compare {
  const sign = order === 'asc' ? 1 : -1
  return (a, b) => sign * (a.value === b.value ? byName(a.channel, b.channel) : a.value < b.value ? -1 : 1)
}

function byName(a: ChannelName, b: ChannelName): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1
  if (a.type === b.type) return 0
  return a.type < b.type ? -1 : 1
}

/** Encodes the last channel of a page with its order, so that a cursor of another order is refused. */
export function cursorOfRank(sort: ChannelSort, order: Order, { value, channel }: Ranked<ChannelName>): string {
  return Buffer.from(JSON.stringify([sort, order, value, channel.type, channel.name])).toString('base64url')
}

/** Decodes a cursor. @throws ManagementError PARAMETER_INVALID if no page of this order returns it */
export function rankOfCursor(sort: ChannelSort, order: Order, cursor: string): Ranked<ChannelName> {
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
