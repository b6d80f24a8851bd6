import type { ChannelType } from '@signalbox/broker-core/engine'

import type { Parts } from '../parts.ts'
import { ReportOnce } from '../report-once.ts'

/** The result of a request about one channel; `undefined` is a valid answer. */
export type Asked<T> = { readonly answer: T } | 'failed'

/** Channels about which the servers do not answer. Each is reported once, and affects no other channel. */
export class FailingChannels {
  readonly #parts: Parts
  readonly #reports: ReportOnce
  /** The running check that JetStream answers at all. */
  #probing: Promise<unknown> | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.#reports = new ReportOnce(parts.settings.onProblem)
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE when JetStream itself does not answer */
  async ask<T>(type: ChannelType, name: string, work: () => Promise<T>): Promise<Asked<T>> {
    const key = `${type} ${name}`
    try {
      const answer = await work()
      this.#reports.over(key)
      return { answer }
    } catch (error) {
      const { connection } = this.#parts
      await (this.#probing ??= connection
        .call(() => connection.manager.getAccountInfo())
        .finally(() => (this.#probing = undefined)))
      const shown = JSON.stringify(name)
      this.#reports.report(
        key,
        `the servers do not answer for ${shown} (${type}); it is listed without its counts`,
        error,
      )
      return 'failed'
    }
  }
}
