import type {
  ChannelEngine,
  ChannelName,
  ChannelOptions,
  ChannelState,
  ChannelType,
} from '@signalbox/broker-core/engine'
import { CHANNEL_TYPES, unavailable } from '@signalbox/broker-core/engine'
import { inTurns } from '@signalbox/broker-core/internal'

import type { ChannelRegistry, LiveChannel } from './channel-registry.ts'
import type { EmbeddedEventsStore } from './events-store/embedded-events-store.ts'
import type { Store } from './store/store.ts'
import { optionsOf } from './store/stored-channel.ts'
import type { EmbeddedEvents } from './events.ts'

/** The channels of the embedded engine: search and management. */
export class EmbeddedChannels implements ChannelEngine {
  readonly #store: Store
  readonly #registry: ChannelRegistry
  readonly #eventsStore: EmbeddedEventsStore
  readonly #events: EmbeddedEvents
  #closed = false

  constructor(store: Store, registry: ChannelRegistry, eventsStore: EmbeddedEventsStore, events: EmbeddedEvents) {
    this.#store = store
    this.#registry = registry
    this.#eventsStore = eventsStore
    this.#events = events
  }

  exists(type: ChannelType, name: string): boolean {
    return this.#registry.get(type, name) !== undefined
  }

  async names(type?: ChannelType): Promise<readonly ChannelName[]> {
    this.#checkOpen()
    if (type !== undefined) return this.#registry.ordered(type)
    return (await Promise.all(CHANNEL_TYPES.map((each) => this.#registry.ordered(each)))).flat()
  }

  async list(type?: ChannelType): Promise<readonly ChannelState[]> {
    this.#checkOpen()
    const types = type === undefined ? CHANNEL_TYPES : [type]
    return types.flatMap((each) => this.#registry.list(each).map((channel) => this.#state(channel)))
  }

  async states(wanted: readonly ChannelName[]): Promise<readonly ChannelState[]> {
    this.#checkOpen()
    const states: ChannelState[] = []
    await inTurns(wanted, ({ type, name }) => {
      const channel = this.#registry.get(type, name)
      if (channel !== undefined) states.push(this.#state(channel))
    })
    return states
  }

  async info(type: ChannelType, name: string): Promise<ChannelState | undefined> {
    this.#checkOpen()
    const channel = this.#registry.get(type, name)
    return channel && this.#state(channel)
  }

  #state(channel: LiveChannel): ChannelState {
    const others = channel.type === 'events' ? this.#events.wildcardSubscribers(channel.name) : 0
    return this.#registry.state(channel, others)
  }

  async create(type: ChannelType, name: string, options: ChannelOptions = {}): Promise<boolean> {
    this.#checkOpen()
    if (type === 'events_store') return this.#eventsStore.create(name, options)
    if (type === 'queues') return this.#createQueue(name, options)
    if (this.#registry.get(type, name)) return false
    this.#registry.ensure(type, name)
    return true
  }

  #createQueue(channel: string, given: ChannelOptions): Promise<boolean> {
    const options = optionsOf('queues', given)
    const operation = { kind: 'createChannel', type: 'queues', channel, options } as const
    return this.#registry.creating('queues', channel, () =>
      this.#store.submit('createChannel', operation, 0, ({ created }) => created),
    )
  }

  async delete(type: ChannelType, channel: string): Promise<boolean> {
    this.#checkOpen()
    if (type !== 'queues' && type !== 'events_store') return this.#registry.remove(type, channel)
    return this.#store.submit('deleteChannel', { kind: 'deleteChannel', type, channel }, 0, ({ deleted }) => deleted)
  }

  #checkOpen(): void {
    if (this.#closed) throw unavailable('it is closed')
  }

  close(): void {
    this.#closed = true
  }
}
