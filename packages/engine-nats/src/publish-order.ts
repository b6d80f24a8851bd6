/** Publishes to one channel that are under way on the same connection. */
interface Phase {
  readonly isLarge: boolean
  readonly after: Promise<void> | undefined
  readonly ended: PromiseWithResolvers<void>
  count: number
}

/**
 * Keeps the order of the messages of a channel that use two connections. A large message waits for the small ones before
 * it. Small ones that follow it use its connection as well, until none is under way.
 */
export class PublishOrder {
  readonly #last = new Map<string, Phase>()

  /** @param publish Publishes on the connection for large messages, or on that for small ones */
  async run<T>(channel: string, isLarge: boolean, publish: (isLarge: boolean) => Promise<T>): Promise<T> {
    const phase = this.#phase(channel, isLarge)
    phase.count++
    try {
      if (phase.after) await phase.after
      return await publish(phase.isLarge)
    } finally {
      if (--phase.count === 0) {
        phase.ended.resolve()
        if (this.#last.get(channel) === phase) this.#last.delete(channel)
      }
    }
  }

  #phase(channel: string, isLarge: boolean): Phase {
    const last = this.#last.get(channel)
    if (last && (last.isLarge || !isLarge)) return last
    const phase: Phase = { isLarge, after: last?.ended.promise, ended: Promise.withResolvers(), count: 0 }
    this.#last.set(channel, phase)
    return phase
  }
}
