import { isReservedChannel } from '@signalbox/broker-core'
import type { BrokerObserver, Caller, ChannelType } from '@signalbox/broker-core'

/** The messages of one channel since the last sample. */
export interface ChannelTraffic {
  readonly type: ChannelType
  readonly name: string
  messagesIn: number
  messagesOut: number
}

/** The channels that are counted between two samples. A channel with much traffic is among the first. */
const MAX_COUNTED = 1_024

/**
 * Counts the messages of channels between two samples of the history: one look-up in a map for each
 * message. Beyond {@link MAX_COUNTED} channels further ones are not counted.
 */
export class ActiveChannels implements BrokerObserver {
  #byType = emptyTables()
  #size = 0

  accepted(type: ChannelType, channel: string, _caller: Caller): void {
    const traffic = this.#of(type, channel)
    if (traffic) traffic.messagesIn++
  }

  delivered(type: ChannelType, channel: string, _caller: Caller): void {
    const traffic = this.#of(type, channel)
    if (traffic) traffic.messagesOut++
  }

  /** Returns the counts since the last call. */
  take(): readonly ChannelTraffic[] {
    if (this.#size === 0) return []
    const counted = Object.values(this.#byType).flatMap((table) => Array.from(table.values()))
    this.#byType = emptyTables()
    this.#size = 0
    return counted
  }

  #of(type: ChannelType, name: string): ChannelTraffic | undefined {
    const table = this.#byType[type]
    const known = table.get(name)
    if (known !== undefined) return known
    if (this.#size >= MAX_COUNTED || isReservedChannel(name)) return undefined
    const traffic = { type, name, messagesIn: 0, messagesOut: 0 }
    table.set(name, traffic)
    this.#size++
    return traffic
  }
}

function emptyTables(): Readonly<Record<ChannelType, Map<string, ChannelTraffic>>> {
  return {
    queues: new Map(),
    events: new Map(),
    events_store: new Map(),
    commands: new Map(),
    queries: new Map(),
  }
}
