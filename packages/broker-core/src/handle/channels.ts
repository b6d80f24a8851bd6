import { Buffer } from 'node:buffer'
import { setImmediate as nextTurn } from 'node:timers/promises'

import type { ChannelType } from '../channel.ts'
import { CHANNEL_TYPES, channelListMatcher } from '../channel.ts'
import type { ChannelName, ChannelOptions, ChannelState } from '../engine/channel-engine.ts'
import { BrokerError } from '../errors.ts'
import { inTurns } from '../in-turns.ts'
import type { ChannelSettings } from '../settings/channel-settings.ts'
import { UNLIMITED } from '../settings/consumer-gate.ts'
import { closest, plausibleMistakes } from '../text.ts'
import type { Access } from './access.ts'
import { assertInteger } from './access.ts'

/** The time after which a channel without traffic and subscribers is no longer active, in ms. */
export const ACTIVE_MS = 5 * 60_000

/** A channel as callers see it: the engine's state, and whether it is active. */
export interface ChannelInfo extends ChannelState {
  /** `true` if the channel had traffic or a subscriber within the last 5 minutes. */
  readonly isActive: boolean
  /** The end of the pause of a queue, in ms since the epoch; absent without a pause. */
  readonly pausedUntil?: number | undefined
}

export interface ChannelFilter {
  readonly type?: ChannelType | undefined
  /** With `*` or `?` a glob, otherwise a prefix. @default '' every name */
  readonly pattern?: string | undefined
}

export interface ChannelPageInput extends ChannelFilter {
  /** The maximum number of channels in a page. @default all */
  readonly limit?: number | undefined
  /** A soft limit on the size of the page as JSON, in bytes. A page has at least one channel. @default none */
  readonly maxBytes?: number
  /** The {@link ChannelPage.nextCursor} of the previous page. @default the first page */
  readonly cursor?: string | undefined
}

export interface ChannelPage<Item = ChannelInfo> {
  readonly channels: readonly Item[]
  /** The cursor of the next page; absent on the last page. */
  readonly nextCursor?: string | undefined
  /** The number of channels on all pages. */
  readonly total: number
  /** The number of channels on later pages. */
  readonly left: number
}

/** Returns the part of a channel's state that a list needs: many states at a time take much memory. */
type Describe<Item> = (info: ChannelInfo) => Item

const everything: Describe<ChannelInfo> = (info) => info

/** The number of channels whose state is requested at the same time. */
const TOGETHER = 512

/**
 * Finds and manages channels for one caller. Users see neither the broker's own channels nor channels that the policy
 * does not let them list.
 */
export class Channels {
  readonly #access: Access

  constructor(access: Access) {
    this.#access = access
  }

  /**
   * Returns the matching channels, ordered by type and name. A `pattern` with `*` or `?` is a glob, otherwise a prefix.
   */
  list(filter?: ChannelFilter): Promise<readonly ChannelInfo[]>
  /** @param describe Returns the part of each channel's state that is kept: many states at a time take much memory */
  list<Item>(filter: ChannelFilter, describe: (info: ChannelInfo) => Item): Promise<readonly Item[]>
  list(filter: ChannelFilter = {}, describe: Describe<unknown> = everything): Promise<readonly unknown[]> {
    return this.#access.run('list', filter.type, filter.pattern ?? '', async () =>
      this.#states(await this.#names(filter), describe),
    )
  }

  /** Returns one page of {@link list}, ordered by the types' names. @throws BrokerError ARGUMENT_INVALID */
  page(input?: ChannelPageInput): Promise<ChannelPage>
  page<Item>(input: ChannelPageInput, describe: (info: ChannelInfo) => Item): Promise<ChannelPage<Item>>
  page(
    { limit = Infinity, maxBytes = Infinity, cursor, ...filter }: ChannelPageInput = {},
    describe: Describe<unknown> = everything,
  ): Promise<ChannelPage<unknown>> {
    return this.#access.run('list', filter.type, filter.pattern ?? '', async () => {
      if (limit !== Infinity) assertInteger('limit', limit, 1)
      const after = cursor === undefined ? undefined : channelOfCursor(cursor)
      const all = (await this.#names(filter)).toSorted(inPageOrder)
      const rest = after === undefined ? all : all.filter((each) => inPageOrder(each, after) > 0)
      const page = firstOf(rest, limit, maxBytes)
      const last = page.at(-1)
      const more = last !== undefined && rest.length > page.length
      return {
        channels: await this.#states(page, describe),
        total: all.length,
        left: rest.length - page.length,
        nextCursor: more ? cursorOfChannel(last) : undefined,
      }
    })
  }

  /** Returns the names of the matching channels, ordered by type and name, without their states. */
  names(filter: ChannelFilter = {}): Promise<readonly ChannelName[]> {
    return this.#access.run('list', filter.type, filter.pattern ?? '', () => this.#names(filter))
  }

  /**
   * Returns the states of the given channels, in the same order, without those that do not exist.
   * @throws BrokerError ARGUMENT_INVALID
   */
  states(names: readonly ChannelName[]): Promise<readonly ChannelInfo[]> {
    const access = this.#access
    return access.run('list', undefined, '', async () => {
      if (!Array.isArray(names)) throw new BrokerError('ARGUMENT_INVALID', 'names is not an array of channels')
      access.requireCredentials('list', CHANNEL_TYPES)
      return this.#states(
        names.filter(({ type, name }) => access.sees(type, name)),
        everything,
      )
    })
  }

  /** Returns the matching channels that the caller may see. @throws BrokerError FORBIDDEN */
  async #names({ type, pattern = '' }: ChannelFilter): Promise<readonly ChannelName[]> {
    const access = this.#access
    access.requireCredentials('list', type === undefined ? CHANNEL_TYPES : [type], pattern)
    const matches = channelListMatcher(pattern)
    const seen: ChannelName[] = []
    await inTurns(await access.engine.channels.names(type), (each) => {
      if (matches(each.name) && access.sees(each.type, each.name)) seen.push(each)
    })
    return seen
  }

  /** Omits channels that were deleted meanwhile. */
  async #states<Item>(names: readonly ChannelName[], describe: Describe<Item>): Promise<readonly Item[]> {
    const { channels } = this.#access.engine
    const items: Item[] = []
    for (let at = 0; at < names.length; at += TOGETHER) {
      // A long list must not block the event loop.
      if (at > 0) await nextTurn()
      const states = await channels.states(names.slice(at, at + TOGETHER))
      for (const state of states) items.push(describe(this.#withActivity(state)))
    }
    return items
  }

  #withActivity(state: ChannelState): ChannelInfo {
    const isActive = state.subscribers > 0 || Date.now() - state.lastActivity < ACTIVE_MS
    const pausedUntil = state.type === 'queues' ? this.#access.gate.pausedUntil(state.name) : undefined
    return pausedUntil === undefined ? { ...state, isActive } : { ...state, isActive, pausedUntil }
  }

  /** Returns one channel's state. @throws BrokerError CHANNEL_NOT_FOUND */
  info(type: ChannelType, channel: string): Promise<ChannelInfo> {
    const access = this.#access
    return access.run('list', type, channel, async () => {
      access.channel('list', type, channel)
      const state = await access.engine.channels.info(type, channel)
      if (!state) throw await this.notFound(type, channel)
      return this.#withActivity(state)
    })
  }

  /**
   * Returns the settings in force, also for a channel that does not exist. `paused_until` is the end of any pause of the
   * queue, also of one that an operator or a receiver began.
   * @throws BrokerError as {@link info}
   */
  settings(type: ChannelType, channel: string): ChannelSettings {
    this.#access.channel('list', type, channel)
    const settings = this.#access.engine.settings.of(type, channel)
    const pausedUntil = type === 'queues' ? this.#access.gate.pausedUntil(channel) : undefined
    if (pausedUntil === undefined) return settings
    const paused_until = new Date(pausedUntil).toISOString()
    return { ...settings, consumers: { ...UNLIMITED, ...settings.consumers, paused_until } }
  }

  /** Returns `true` if the channel does not exist and the caller may know that. Fast: reads only memory. */
  isMissing(type: ChannelType, channel: string): boolean {
    assertNames(type, channel)
    return !this.#access.engine.channels.exists(type, channel) && this.#access.sees(type, channel)
  }

  /** Returns the number of subscribers that this node knows; `undefined` if the caller may not list the channel. */
  async subscribers(type: ChannelType, channel: string): Promise<number | undefined> {
    assertNames(type, channel)
    const { engine } = this.#access
    return this.#access.sees(type, channel)
      ? ((await engine.channels.info(type, channel))?.subscribers ?? 0)
      : undefined
  }

  /** Returns the CHANNEL_NOT_FOUND error for a channel, with {@link elsewhere}. */
  async notFound(type: ChannelType, channel: string): Promise<BrokerError> {
    assertNames(type, channel)
    const types = this.#otherTypes(type, channel)
    const elsewhere = await this.elsewhere(type, channel)
    return new BrokerError(
      'CHANNEL_NOT_FOUND',
      `there is no channel ${JSON.stringify(channel)} of type ${type}${elsewhere === undefined ? '' : `; ${elsewhere}`}`,
      { channel, type, ...(types.length === 0 ? {} : { types }) },
    )
  }

  /**
   * Returns what a caller may have meant by a name: the other types that have it, or else a similar name of the same
   * type, if the caller may list them.
   */
  async elsewhere(type: ChannelType, channel: string): Promise<string | undefined> {
    assertNames(type, channel)
    const types = this.#otherTypes(type, channel)
    if (types.length > 0) return `the name exists as ${types.join(' and ')}`
    const similar = await this.#similar(type, channel)
    return similar === undefined ? undefined : `a similar name is ${JSON.stringify(similar)}`
  }

  #otherTypes(type: ChannelType, channel: string): readonly ChannelType[] {
    const { channels } = this.#access.engine
    return CHANNEL_TYPES.filter(
      (each) => each !== type && channels.exists(each, channel) && this.#access.sees(each, channel),
    )
  }

  /**
   * Returns the existing channel of a type whose name is most similar to another name, if one is close and the caller
   * may list it. Names that differ in numbers only are not similar.
   */
  async #similar(type: ChannelType, name: string): Promise<string | undefined> {
    const { engine } = this.#access
    const mistakes = plausibleMistakes(name)
    const known = withoutNumbers(name)
    let best: string | undefined
    await inTurns(await engine.channels.names(type), ({ name: other }) => {
      if (Math.abs(other.length - name.length) > mistakes || withoutNumbers(other) === known) return
      if (!this.#access.sees(type, other)) return
      const candidates = best === undefined ? [other] : [best, other]
      best = closest(name, candidates, mistakes)
    })
    return best
  }

  /** Creates a channel; returns false if it exists already. The first use of a channel also creates it. */
  create(type: ChannelType, channel: string, options: ChannelOptions = {}): Promise<boolean> {
    const access = this.#access
    return access.run('create', type, channel, async () => {
      access.channel('manage', type, channel)
      const created = await access.creating(type, channel, () => access.engine.channels.create(type, channel, options))
      if (created) access.observers.managed('create', type, channel, access.caller)
      return created
    })
  }

  /** Deletes the channel and its content; returns false if it does not exist. */
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

function withoutNumbers(name: string): string {
  return name.replaceAll(/\d+/g, '#')
}

/** @throws BrokerError ARGUMENT_INVALID for an invalid type or name */
function assertNames(type: unknown, channel: unknown): void {
  if (CHANNEL_TYPES.some((known) => known === type) && typeof channel === 'string') return
  throw new BrokerError('ARGUMENT_INVALID', 'type or channel is invalid; allowed are a channel type and a name')
}

/** The approximate size of a channel as JSON without its name, in bytes. */
const DESCRIPTOR_BYTES = 64

/**
 * Encodes the last channel of a page. The cursor is a name, not a position, so it remains valid when channels are
 * created or deleted.
 */
function cursorOfChannel({ type, name }: ChannelName): string {
  return Buffer.from(`${type} ${name}`).toString('base64url')
}

/** Decodes a cursor. @throws BrokerError ARGUMENT_INVALID if no page returns this cursor */
function channelOfCursor(cursor: string): ChannelName {
  const text = Buffer.from(cursor, 'base64url').toString()
  const type = CHANNEL_TYPES.find((each) => text.startsWith(`${each} `))
  const channel = type && { type, name: text.slice(type.length + 1) }
  if (channel && cursorOfChannel(channel) === cursor) return channel
  throw new BrokerError(
    'ARGUMENT_INVALID',
    'invalid argument cursor: no page returned it; allowed is the next cursor of the previous page',
    {
      argument: 'cursor',
      allowed: 'the next cursor of the previous page',
    },
  )
}

/** Compares two channels in the order of pages: by type, then by name. */
function inPageOrder(a: ChannelName, b: ChannelName): number {
  if (a.type !== b.type) return a.type < b.type ? -1 : 1
  if (a.name === b.name) return 0
  return a.name < b.name ? -1 : 1
}

/** Returns the names that fit into a page; at least one, if there is any. */
function firstOf(names: readonly ChannelName[], limit: number, maxBytes: number): readonly ChannelName[] {
  let count = 0
  let bytes = 0
  for (const { name } of names) {
    bytes += Buffer.byteLength(name) + DESCRIPTOR_BYTES
    if (count > 0 && (count >= limit || bytes > maxBytes)) break
    count++
  }
  return names.slice(0, count)
}
