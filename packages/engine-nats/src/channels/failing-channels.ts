import type { ChannelType } from '@signalbox/broker-core/engine'

import type { Parts } from '../parts.ts'
import { ReportOnce } from '../report-once.ts'

/** What was asked of one channel: `undefined` is an answer too. */
export type Asked<T> = { readonly answer: T } | 'failed'

/** Channels that the servers say nothing of: one that fails is reported once, and fails nothing else. */
export class FailingChannels {
  readonly #parts: Parts
  readonly #reports: ReportOnce
  /** Whether JetStream answers at all, while that is asked. */
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
      this.#reports.report(key, `the servers say nothing of ${shown} (${type}); it is shown without figures`, error)
      return 'failed'
    }
  }
}
