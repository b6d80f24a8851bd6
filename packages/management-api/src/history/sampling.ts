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

/** The pause after a reading, as a multiple of its duration: an engine is busy with it 2 % of the time. */
const PAUSE_FACTOR = 50

/**
 * A number of an engine that the history reads at each step. A slow engine is asked less often, and
 * the previous value is used in between.
 */
export class PacedReading<Value> {
  readonly #read: () => Promise<Value>
  #value: Value | undefined
  #running: Promise<void> | undefined
  #notBefore = 0

  constructor(read: () => Promise<Value>) {
    this.#read = read
  }

  /** Returns the current value, or after `waitMs` the previous one; undefined if the reading failed. */
  async value(waitMs: number): Promise<Value | undefined> {
    if (performance.now() >= this.#notBefore) this.#running ??= this.#start()
    if (this.#running !== undefined) {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, waitMs).unref()))
      await Promise.race([this.#running, late])
      clearTimeout(timer)
    }
    return this.#value
  }

  async #start(): Promise<void> {
    const startedAt = performance.now()
    try {
      this.#value = await this.#read()
    } catch {
      this.#value = undefined
    } finally {
      const now = performance.now()
      this.#notBefore = now + (now - startedAt) * PAUSE_FACTOR
      this.#running = undefined
    }
  }
}
