import type { Caller } from './caller.ts'
import type { Engine, EngineHealth, EngineLimits, EngineStats } from './engine.ts'
import { Access } from './handle/access.ts'
import { Channels } from './handle/channels.ts'
import { EventsStore } from './handle/events-store.ts'
import { Events } from './handle/events.ts'
import { Queues } from './handle/queues.ts'
import { Requests } from './handle/requests.ts'
import type { BrokerObserver } from './observer.ts'
import { Observers } from './observer.ts'
import type { Routing } from './routing/routing.ts'

/** The broker for one verified caller: a name space for each channel type. Cheap to make for every request. */
export class BrokerHandle {
  readonly #access: Access
  readonly queues: Queues
  readonly events: Events
  readonly eventsStore: EventsStore
  readonly commands: Requests
  readonly queries: Requests
  readonly channels: Channels

  constructor(access: Access) {
    this.#access = access
    this.queues = new Queues(access)
    this.events = new Events(access)
    this.eventsStore = new EventsStore(access)
    this.commands = new Requests(access, 'commands')
    this.queries = new Requests(access, 'queries')
    this.channels = new Channels(access)
  }

  get caller(): Caller {
    return this.#access.caller
  }
}

/**
 * The facade that every call goes through, whatever protocol it came by: rules are kept here, once, and storage is the
 * engine's. It holds no way to the reserved channels; {@link createBroker} returns that separately.
 */
export class Broker {
  readonly #engine: Engine
  readonly #observers: Observers
  readonly #routing: Routing | undefined

  constructor(engine: Engine, observers: Observers, routing?: Routing) {
    this.#engine = engine
    this.#observers = observers
    this.#routing = routing
  }

  /** A handle bound to a caller whose identity was verified. */
  as(caller: Caller): BrokerHandle {
    return new BrokerHandle(new Access(this.#engine, this.#observers, caller, false, this.#routing))
  }

  /** Adds an observer; the returned function removes it. */
  observe(observer: BrokerObserver): () => void {
    return this.#observers.add(observer)
  }

  /** Name and declared limits of the engine beneath. */
  get engine(): { readonly name: string; readonly limits: EngineLimits } {
    return this.#engine
  }

  health(): Promise<EngineHealth> {
    return this.#engine.health()
  }

  stats(): Promise<EngineStats> {
    return this.#engine.stats()
  }
}

export interface BrokerOptions {
  readonly observers?: readonly BrokerObserver[]
  /** Copies messages to other channels; its table can be replaced while the broker runs. @default nothing is routed */
  readonly routing?: Routing
}

/** The identity under which the broker's own parts use channels. */
const SYSTEM: Caller = Object.freeze({ clientId: 'signalbox' })

/**
 * Puts a Broker over an engine. `system` is the handle for the broker's own parts (agent registry, gateway, audit):
 * it alone reaches the channels that begin with `_AGENTS_.`. Hand it out at composition time only; nothing leads from
 * `broker`, and so from a request, to it.
 */
export function createBroker(engine: Engine, options: BrokerOptions = {}): { broker: Broker; system: BrokerHandle } {
  const observers = new Observers(options.observers ?? [])
  const { routing } = options
  return {
    broker: new Broker(engine, observers, routing),
    system: new BrokerHandle(new Access(engine, observers, SYSTEM, true, routing)),
  }
}
