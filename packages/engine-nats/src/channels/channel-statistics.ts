import type { EngineStats } from '@signalbox/broker-core/engine'

import { API, isApiError } from '../errors.ts'
import type { EventsStoreReader } from '../events-store/events-store-reader.ts'
import type { Parts } from '../parts.ts'
import type { QueueGauges } from '../queues/queue-gauges.ts'
import type { FailingChannels } from './failing-channels.ts'
import type { StoredChannel } from './stored-channel.ts'

/**
 * The time for which the totals are reused, in milliseconds: there may be several scrapers, and each pass
 * asks for every stream.
 */
const SHOWN_MS = 1_000
/** The number of channels that are read at the same time. */
const PARALLEL = 64

type Totals = Omit<EngineStats, 'channels' | 'sinceOpen'>

/** The totals over all channels. Concurrent readers share one pass; its result is reused for a second. */
export class ChannelStatistics {
  readonly #parts: Parts
  readonly #gauges: QueueGauges
  readonly #reader: EventsStoreReader
  readonly #failing: FailingChannels
  #pass: Promise<Totals> | undefined
  #last: { readonly totals: Totals; readonly at: number } | undefined

  constructor(parts: Parts, gauges: QueueGauges, reader: EventsStoreReader, failing: FailingChannels) {
    this.#parts = parts
    this.#gauges = gauges
    this.#reader = reader
    this.#failing = failing
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE */
  async read(): Promise<EngineStats> {
    await this.#parts.connection.ready()
    const isShown = this.#last !== undefined && performance.now() - this.#last.at < SHOWN_MS
    const totals = this.#last && isShown ? this.#last.totals : await this.#share()
    const { channelLimit, counterTable } = this.#parts
    return { ...totals, channels: channelLimit.channels, sinceOpen: { ...counterTable.sinceOpen } }
  }

  #share(): Promise<Totals> {
    this.#pass ??= this.#sum().finally(() => (this.#pass = undefined))
    return this.#pass
  }

  async #sum(): Promise<Totals> {
    const { storedChannels } = this.#parts
    const queues = { waiting: 0, delayed: 0, inFlight: 0 }
    const totals = { storeBytes: 0, queues }
    const left = [...storedChannels.all('queues'), ...storedChannels.all('events_store')]
    const work = async (): Promise<void> => {
      for (let channel = left.pop(); channel; channel = left.pop()) {
        const next = channel
        const asked = await this.#failing.ask(next.type, next.name, () => this.#held(next))
        if (asked === 'failed' || !asked.answer) continue
        const { messages, delayed, leased, bytes } = asked.answer
        totals.storeBytes += bytes
        queues.delayed += delayed
        queues.inFlight += leased
        queues.waiting += messages - delayed - leased
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, work))
    this.#last = { totals, at: performance.now() }
    return totals
  }

  /**
   * Reads the counts of a channel; of an events store only the bytes. Resolves with undefined if it was
   * deleted in the meantime.
   */
  async #held(
    channel: StoredChannel,
  ): Promise<{ messages: number; delayed: number; leased: number; bytes: number } | undefined> {
    try {
      if (channel.type === 'events_store') {
        const { bytes } = await this.#reader.counts(channel)
        return { messages: 0, delayed: 0, leased: 0, bytes }
      }
      const { messages, delayed, bytes } = await this.#gauges.read(channel)
      // Leases are not stored, so the stored counters need not be read.
      const leased = Math.min(this.#parts.counters.leased(channel.incarnation), messages - delayed)
      return { messages, delayed, leased: Math.max(0, leased), bytes }
    } catch (error) {
      if (isApiError(error, API.STREAM_NOT_FOUND)) return undefined
      throw error
    }
  }
}
