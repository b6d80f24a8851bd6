import type { BrokerHandle, ChannelInfo } from '@signalbox/broker-core'

/** The states of all channels at one time. */
interface IndexedChannels {
  readonly channels: readonly ChannelInfo[]
  /** The time at which the states were read, in ms since the epoch. */
  readonly asOf: number
  /** False if the first reading still runs: channels are missing. */
  readonly complete: boolean
}

/** The longest wait for new states, in ms; after it the previous ones are used. */
const WAIT_MS = 600
/** The shortest time for which states are used, in ms, and that time as a multiple of their reading. */
const SHOWN_MS = 1_000
const SHOWN_FACTOR = 20
/** The time after which unused states are dropped, in ms: those of 100,000 channels take 30 MB. */
const DROP_MS = 30_000
/** The channels whose states are requested together. */
const TOGETHER = 1_024

/**
 * The states of all channels, for lists that are sorted by them. Requests share one reading. An engine
 * whose states are on other machines needs seconds for many channels; meanwhile the previous states
 * are used.
 */
export class ChannelIndex {
  #last: { readonly index: IndexedChannels; readonly until: number } | undefined
  #partial: ChannelInfo[] = []
  #pass: Promise<void> | undefined
  #drop: NodeJS.Timeout | undefined

  async read({ channels }: Pick<BrokerHandle, 'channels'>): Promise<IndexedChannels> {
    this.#dropLater()
    const last = this.#last
    if (last !== undefined && performance.now() < last.until) return last.index
    this.#pass ??= this.#readAll(channels).finally(() => (this.#pass = undefined))
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, WAIT_MS)))
    try {
      await Promise.race([this.#pass, late])
    } finally {
      clearTimeout(timer)
    }
    return this.#last?.index ?? { channels: [...this.#partial], asOf: Date.now(), complete: false }
  }

  async #readAll(channels: BrokerHandle['channels']): Promise<void> {
    const startedAt = performance.now()
    const asOf = Date.now()
    const all: ChannelInfo[] = (this.#partial = [])
    const names = await channels.names()
    for (let at = 0; at < names.length; at += TOGETHER) {
      all.push(...(await channels.states(names.slice(at, at + TOGETHER))))
    }
    const now = performance.now()
    const shown = Math.max(SHOWN_MS, (now - startedAt) * SHOWN_FACTOR)
    this.#last = { index: { channels: all, asOf, complete: true }, until: now + shown }
    this.#partial = []
  }

  #dropLater(): void {
    clearTimeout(this.#drop)
    this.#drop = setTimeout(() => (this.#last = undefined), DROP_MS).unref()
  }
}
