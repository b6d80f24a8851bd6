import { BrokerError } from '@signalbox/broker-core'
import type { Engine } from '@signalbox/broker-core'

/** The writes that a full disk refuses. */
const GROWS = new Set(['append', 'send'])

/** An engine of which some channels have no space on their disk: the embedded engine refuses in the same way. */
export class FullDisk {
  /** Returns true for a write that finds the disk full, by its channel and its key. */
  refuses: (channel: string, key: string | undefined) => boolean = () => false
  /** Called before a write that is not refused. */
  before: (channel: string, key: string | undefined) => Promise<void> | undefined = () => undefined
  /** The number of writes that were refused. */
  refused = 0

  readonly wrap = (engine: Engine): Engine => {
    const part = <T extends object>(store: T): T =>
      new Proxy(store, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name)
          if (typeof value !== 'function') return value
          return (...given: unknown[]): unknown => {
            const [channel, message] = given
            const key = (message as { key?: string } | undefined)?.key
            const act = (): unknown => Reflect.apply(value, target, given)
            if (!GROWS.has(String(name))) return act()
            if (!this.refuses(String(channel), key)) return this.before(String(channel), key)?.then(act) ?? act()
            this.refused++
            return Promise.reject(new BrokerError('ENGINE_UNAVAILABLE', 'the disk is full'))
          }
        },
      })
    const queues = part(engine.queues)
    const eventsStore = part(engine.eventsStore)
    return new Proxy(engine, {
      get: (target, name) => {
        if (name === 'queues') return queues
        if (name === 'eventsStore') return eventsStore
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }
}
