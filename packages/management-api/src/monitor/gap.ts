import type { ChannelType } from '@signalbox/broker-core'

import type { Direction, MonitorFilter } from './monitor-filter.ts'

/**
 * The most pairs of direction and channel that are counted separately; the others are counted for
 * every monitor. The limit bounds memory.
 */
const MAX_SEPARATE = 1_000

interface Missed {
  readonly direction: Direction
  readonly type: ChannelType
  readonly channel: string
  count: number
}

/** A place in the sequence of messages where some were not shown, because the server was too busy. */
export class Gap {
  readonly #missed = new Map<string, Missed>()
  #others = 0

  add(direction: Direction, type: ChannelType, channel: string): void {
    const key = `${direction} ${type} ${channel}`
    const known = this.#missed.get(key)
    if (known !== undefined) known.count++
    else if (this.#missed.size < MAX_SEPARATE) this.#missed.set(key, { direction, type, channel, count: 1 })
    else this.#others++
  }

  /** Returns the number of messages that a monitor with this filter missed. */
  countFor({ matches }: MonitorFilter): number {
    let count = this.#others
    for (const missed of this.#missed.values()) {
      if (matches(missed.direction, missed.type, missed.channel)) count += missed.count
    }
    return count
  }
}
