import type { ChannelType } from '@signalbox/broker-core'

import type { Direction, MonitorFilter } from './monitor-filter.ts'

/** More of one gap than this are counted for every monitor: memory must not grow with what is missed. */
const MAX_SEPARATE = 1_000

interface Missed {
  readonly direction: Direction
  readonly type: ChannelType
  readonly channel: string
  count: number
}

/** Messages that nobody was shown, at one place among those that were: the server was too busy. */
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

  /** How many of them a monitor with this filter missed. */
  countFor({ matches }: MonitorFilter): number {
    let count = this.#others
    for (const missed of this.#missed.values()) {
      if (matches(missed.direction, missed.type, missed.channel)) count += missed.count
    }
    return count
  }
}
