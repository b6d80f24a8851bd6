import type { Engine, StoredEvent, Subscription } from '@signalbox/broker-core'
import { BrokerError } from '@signalbox/broker-core'

/** What a test does to one node's way to the engine; the engine beneath is the real one. */
export class Faults {
  #held: PromiseWithResolvers<void> | undefined
  #ends: ((error: Error) => void)[] = []
  #away = false
  #unreadable = 0

  /** Entries do not come to this node until {@link release}. */
  hold(): void {
    this.#held ??= Promise.withResolvers<void>()
  }

  release(): void {
    this.#held?.resolve()
    this.#held = undefined
  }

  /** Writes fail until {@link back}. */
  away(): void {
    this.#away = true
  }

  back(): void {
    this.#away = false
  }

  /** So many reads fail. */
  failReads(times: number): void {
    this.#unreadable = times
  }

  /** The engine ends the subscriptions of this node. */
  endSubscriptions(): void {
    for (const end of this.#ends.splice(0)) end(new Error('the connection is gone'))
  }

  wrap(engine: Engine): Engine {
    const { eventsStore } = engine
    return {
      name: engine.name,
      capabilities: engine.capabilities,
      limits: engine.limits,
      settings: engine.settings,
      queues: engine.queues,
      events: engine.events,
      requests: engine.requests,
      channels: engine.channels,
      settingProblem: (entry) => engine.settingProblem(entry),
      health: () => engine.health(),
      stats: () => engine.stats(),
      close: () => engine.close(),
      eventsStore: {
        append: async (channel, entry) => {
          if (this.#away) throw new BrokerError('ENGINE_UNAVAILABLE', 'the store is away')
          return eventsStore.append(channel, entry)
        },
        read: async (channel, options) => {
          if (this.#unreadable-- > 0) throw new BrokerError('ENGINE_UNAVAILABLE', 'the store does not answer')
          return eventsStore.read(channel, options)
        },
        readLatest: (channel, options) => eventsStore.readLatest(channel, options),
        getLast: (channel, key) => eventsStore.getLast(channel, key),
        subscribe: async (channel, start, options, listener) => {
          const held = async (event: StoredEvent): Promise<void> => {
            await this.#held?.promise
            await listener(event)
          }
          return this.#endable(await eventsStore.subscribe(channel, start, options, held))
        },
      },
    }
  }

  #endable(subscription: Subscription): Subscription {
    const ended = Promise.withResolvers<Error | undefined>()
    subscription.closed.then(ended.resolve, ended.reject)
    this.#ends.push((error) => {
      ended.resolve(error)
      void subscription.close()
    })
    return {
      closed: ended.promise,
      close: () => subscription.close(),
      [Symbol.asyncDispose]: () => subscription.close(),
    }
  }
}
