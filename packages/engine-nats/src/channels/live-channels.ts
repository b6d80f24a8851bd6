import { channelNameProblem } from '@signalbox/broker-core'
import type { ChannelName, ChannelType } from '@signalbox/broker-core/engine'
import { isReservedChannel } from '@signalbox/broker-core/engine'
import { ChannelMap } from '@signalbox/broker-core/internal'

import type { ReportOnce } from '../problems.ts'
import type { ChannelLimit } from './stored-channels.ts'

/** Returns the key of a channel in memory in the counter table. */
export function liveKey(type: LiveType, name: string): string {
  return `${type} ${name}`
}

const LIVE_TYPES = ['events', 'commands', 'queries'] as const

/** Returns true for a {@link liveKey}; the key of a stored channel contains no blank. */
export function isLiveKey(key: string): boolean {
  return key.includes(' ')
}

/** The time after which an unused channel of the broker itself is removed: each agent stream leaves one. */
const RESERVED_IDLE_MS = 5 * 60_000

/**
 * Channels of events, commands and queries. They exist in the memory of all nodes, as long as one of the
 * nodes runs.
 */
export class LiveChannels {
  readonly #limit: ChannelLimit
  readonly #reports: ReportOnce
  readonly #channels: Record<LiveType, ChannelMap<{ usedAt: number }>> = {
    events: new ChannelMap('events'),
    commands: new ChannelMap('commands'),
    queries: new ChannelMap('queries'),
  }
  #announce: (change: LiveChange) => void = () => {}

  constructor(limit: ChannelLimit, reports: ReportOnce) {
    this.#limit = limit
    this.#reports = reports
  }

  /** Starts to announce changes to the other nodes. */
  start(announce: (change: LiveChange) => void): void {
    this.#announce = announce
  }

  has(type: LiveType, name: string): boolean {
    return this.#channels[type].has(name)
  }

  /** Returns true when the channel of a {@link liveKey} exists. */
  hasKey(key: string): boolean {
    const blank = key.indexOf(' ')
    const type = LIVE_TYPES.find((each) => each === key.slice(0, Math.max(0, blank)))
    return type !== undefined && this.has(type, key.slice(blank + 1))
  }

  /** Returns the channels of a type in the order of their names. */
  ordered(type: LiveType): Promise<readonly ChannelName[]> {
    return this.#channels[type].ordered()
  }

  get all(): readonly LiveChange[] {
    return LIVE_TYPES.flatMap((type) => [...this.#channels[type].keys()].map((name) => ({ type, name, exists: true })))
  }

  /** @throws BrokerError CHANNEL_LIMIT */
  ensure(type: LiveType, name: string): void {
    const known = this.#channels[type].get(name)
    if (known) {
      known.usedAt = Date.now()
      return
    }
    if (!isReservedChannel(name)) this.#limit.assertRoom()
    this.#add(type, name)
    this.#announce({ type, name, exists: true })
  }

  remove(type: LiveType, name: string): boolean {
    if (!this.#drop(type, name)) return false
    this.#announce({ type, name, exists: false })
    return true
  }

  /** Applies an announcement of another node. */
  hear({ type, name, exists }: LiveChange): void {
    if (!exists) this.#drop(type, name)
    else if (!this.has(type, name) && this.#mayBe(name)) this.#add(type, name)
  }

  /**
   * Any client of the servers can announce channels, so invalid names, and names beyond the limit, are
   * ignored.
   */
  #mayBe(name: string): boolean {
    const problem = channelNameProblem(name)
    if (problem !== undefined) {
      this.#reports.report('names', `other nodes announce channels with invalid names (${problem}); they are ignored`)
    } else if (!isReservedChannel(name) && !this.#limit.hasRoomForAnnounced) {
      this.#reports.report('room', 'other nodes announce more channels than MAX_CHANNELS allows; they are ignored')
    } else return true
    return false
  }

  #add(type: LiveType, name: string): void {
    this.#channels[type].set(name, { usedAt: Date.now() })
    if (!isReservedChannel(name)) this.#limit.added()
  }

  #drop(type: LiveType, name: string): boolean {
    if (!this.#channels[type].delete(name)) return false
    if (!isReservedChannel(name)) this.#limit.removed()
    return true
  }

  /** Removes the broker's own channels that this node knows to be idle. */
  forgetIdleReserved(isUsed: (type: LiveType, name: string) => boolean): void {
    const before = Date.now() - RESERVED_IDLE_MS
    for (const type of LIVE_TYPES) {
      for (const [name, channel] of this.#channels[type]) {
        if (!isReservedChannel(name) || channel.usedAt > before) continue
        if (isUsed(type, name)) channel.usedAt = Date.now()
        else this.#drop(type, name)
      }
    }
  }
}

export type LiveType = Exclude<ChannelType, 'queues' | 'events_store'>

/** A channel of a type that is not stored was created or deleted on some node. */
export interface LiveChange {
  readonly type: LiveType
  readonly name: string
  readonly exists: boolean
}
