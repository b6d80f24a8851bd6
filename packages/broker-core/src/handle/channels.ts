import { setImmediate as nextTurn } from 'node:timers/promises'

import { channelListMatcher } from '../channel-pattern.ts'
import { CHANNEL_TYPES } from '../channel.ts'
import type { ChannelType } from '../channel.ts'
import { channelOfCursor, cursorOfChannel, firstOf, inPageOrder } from '../channel-page.ts'
import type { ChannelName, ChannelOptions, ChannelState } from '../engine.ts'
import { BrokerError } from '../errors.ts'
import type { Access } from './access.ts'
import { assertInteger } from './access.ts'

/** A channel without traffic or a subscriber for this long is not active any more (C3). */
export const ACTIVE_MS = 5 * 60_000

/** What callers see of a channel: the engine's state, and whether it is active. */
export interface ChannelInfo extends ChannelState {
  /** Traffic or a subscriber within the last 5 minutes (C3). */
  readonly isActive: boolean
}

export interface ChannelFilter {
  readonly type?: ChannelType
  /** With `*` or `?` a glob, otherwise a prefix (M9). @default '' every name */
  readonly pattern?: string
}

export interface ChannelPageInput extends ChannelFilter {
  /** The most channels of one page. @default all */
  readonly limit?: number
  /** A soft limit on the bytes that the page takes as JSON. One channel is always given. @default none */
  readonly maxBytes?: number
  /** {@link ChannelPage.nextCursor} of the page before. @default the first page */
  readonly cursor?: string
}

export interface ChannelPage {
  readonly channels: readonly ChannelInfo[]
  /** Absent on the last page. */
  readonly nextCursor?: string
  /** Channels on all pages. */
  readonly total: number
}

/** Channels whose state is asked for at the same time. */
const TOGETHER = 64

/**
 * Finding and managing channels, for one caller. The broker's own are not there for users, nor are those that the policy
 * does not let them list (S4).
 */
export class Channels {
  readonly #access: Access

  constructor(access: Access) {
    this.#access = access
  }

  /** In the order of type and name. `pattern` with `*` or `?` is a glob, otherwise a prefix (M9). */
  list(filter: ChannelFilter = {}): Promise<readonly ChannelInfo[]> {
    return this.#access.run('list', filter.type, filter.pattern ?? '', async () =>
      this.#states(await this.#names(filter)),
    )
  }

  /** A part of {@link list}, in the order of the types' names. @throws BrokerError ARGUMENT_INVALID */
  page({ limit = Infinity, maxBytes = Infinity, cursor, ...filter }: ChannelPageInput): Promise<ChannelPage> {
    return this.#access.run('list', filter.type, filter.pattern ?? '', async () => {
      if (limit !== Infinity) assertInteger('limit', limit, 1)
      const after = cursor === undefined ? undefined : channelOfCursor(cursor)
      const all = (await this.#names(filter)).toSorted(inPageOrder)
      const rest = after === undefined ? all : all.filter((each) => inPageOrder(each, after) > 0)
      const page = firstOf(rest, limit, maxBytes)
      const last = page.at(-1)
      const more = last !== undefined && rest.length > page.length
      return {
        channels: await this.#states(page),
        total: all.length,
        ...(more ? { nextCursor: cursorOfChannel(last) } : {}),
      }
    })
  }

  /** The channels that match and that the caller may see. */
  async #names({ type, pattern = '' }: ChannelFilter): Promise<readonly ChannelName[]> {
    const access = this.#access
    const matches = channelListMatcher(pattern)
    const names = await access.engine.channels.names(type)
    return names.filter((each) => matches(each.name) && access.sees(each.type, each.name))
  }

  /** A channel that was deleted meanwhile is left out. */
  async #states(names: readonly ChannelName[]): Promise<readonly ChannelInfo[]> {
    const { channels } = this.#access.engine
    const infos: ChannelInfo[] = []
    for (let at = 0; at < names.length; at += TOGETHER) {
      // A long list must not hold up the event loop.
      if (at > 0) await nextTurn()
      infos.push(...(await channels.states(names.slice(at, at + TOGETHER))).map(withActivity))
    }
    return infos
  }

  /** @throws BrokerError CHANNEL_NOT_FOUND */
  info(type: ChannelType, channel: string): Promise<ChannelInfo> {
    const access = this.#access
    return access.run('list', type, channel, async () => {
      access.channel('list', type, channel)
      const state = await access.engine.channels.info(type, channel)
      if (!state) throw this.notFound(type, channel)
      return withActivity(state)
    })
  }

  /** Returns the CHANNEL_NOT_FOUND error for a channel; it names the types under which the caller may see the name. */
  notFound(type: ChannelType, channel: string): BrokerError {
    const { engine } = this.#access
    const types = CHANNEL_TYPES.filter(
      (each) => each !== type && engine.channels.exists(each, channel) && this.#access.sees(each, channel),
    )
    const elsewhere = types.length === 0 ? '' : `; the name exists as ${types.join(' and ')}`
    return new BrokerError(
      'CHANNEL_NOT_FOUND',
      `there is no channel ${JSON.stringify(channel)} of type ${type}${elsewhere}`,
      { channel, type, ...(types.length === 0 ? {} : { types }) },
    )
  }

  /** False when it exists already. Channels also come into being when first used. */
  create(type: ChannelType, channel: string, options: ChannelOptions = {}): Promise<boolean> {
    const access = this.#access
    return access.run('create', type, channel, async () => {
      access.channel('manage', type, channel)
      const created = await access.creating(type, channel, () => access.engine.channels.create(type, channel, options))
      if (created) access.observers.managed('create', type, channel, access.caller)
      return created
    })
  }

  /** Removes the channel and all it holds. False when there is none. */
  delete(type: ChannelType, channel: string): Promise<boolean> {
    const access = this.#access
    return access.run('delete', type, channel, async () => {
      access.channel('manage', type, channel)
      const deleted = await access.engine.channels.delete(type, channel)
      if (!deleted) return false
      access.deleted(type, channel)
      access.observers.managed('delete', type, channel, access.caller)
      return true
    })
  }
}

function withActivity(state: ChannelState): ChannelInfo {
  return { ...state, isActive: state.subscribers > 0 || Date.now() - state.lastActivity < ACTIVE_MS }
}
