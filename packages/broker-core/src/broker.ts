import type { Authorization } from './authorization/authorization.ts'
import type { PolicyAction, ResourceType } from './authorization/vocabulary.ts'
import type { Caller } from './caller.ts'
import type { CallerLimitName, LimitsOfCaller } from './caller-limits.ts'
import { CallerUsage } from './caller-limits.ts'
import type { Engine, EngineHealth, EngineLimits, EngineStats } from './engine.ts'
import type { BrokerError } from './errors.ts'
import type { BrokerContext } from './handle/access.ts'
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

  /** Whether the policy lets the caller do this on a channel; for agents it is the agent_id (S4). */
  permits(action: PolicyAction, type: ResourceType, channel: string): boolean {
    return this.#access.permits(action, type, channel)
  }

  /** Whether there may be a channel on which the policy lets the caller do this: false only when there is none. */
  mayPermit(action: PolicyAction, type: ResourceType): boolean {
    return this.#access.mayPermit(action, type)
  }

  /**
   * As {@link permits}, and a denial is told to the observers: for what the handle's own methods do not do, such as calling
   * an agent, and for checking all of a request before any of it is done.
   * @throws BrokerError FORBIDDEN
   */
  authorize(action: PolicyAction, type: ResourceType, channel: string): void {
    this.#access.authorize(action, type, channel)
  }

  /**
   * Watches over something that was authorized and goes on, such as an agent's stream: calls back, once, when a new policy
   * does not allow it any more, which is told to the observers. The returned function ends the watch.
   */
  whilePermitted(
    action: PolicyAction,
    type: ResourceType,
    channel: string,
    revoked: (refusal: BrokerError) => void,
  ): () => void {
    return this.#access.whilePermitted(action, type, channel, revoked)
  }
}

/**
 * The facade that every call goes through, whatever protocol it came by: rules are kept here, once, and storage is the
 * engine's. It holds no way to the reserved channels; {@link createBroker} returns that separately.
 */
export class Broker {
  readonly #context: BrokerContext
  readonly #authorization: Authorization | undefined
  readonly #policyOfSenders: Authorization | undefined

  /** @param policyOfSenders The policy that {@link onBehalfOf} applies. */
  constructor(context: BrokerContext, authorization?: Authorization, policyOfSenders = authorization) {
    this.#context = context
    this.#authorization = authorization
    this.#policyOfSenders = policyOfSenders
  }

  /** A handle bound to a caller whose identity was verified. */
  as(caller: Caller): BrokerHandle {
    return new BrokerHandle(new Access(this.#context, caller, false, this.#authorization))
  }

  /**
   * A handle for acting in the name of the sender of a message, such as a redrive: the policy applies to the sender also
   * where it does not apply to who asks for it.
   */
  onBehalfOf(sender: Caller): BrokerHandle {
    return new BrokerHandle(new Access(this.#context, sender, false, this.#policyOfSenders))
  }

  /** Adds an observer; the returned function removes it. */
  observe(observer: BrokerObserver): () => void {
    return this.#context.observers.add(observer)
  }

  /** Name and declared limits of the engine beneath. */
  get engine(): { readonly name: string; readonly limits: EngineLimits } {
    return this.#context.engine
  }

  health(): Promise<EngineHealth> {
    return this.#context.engine.health()
  }

  stats(): Promise<EngineStats> {
    return this.#context.engine.stats()
  }
}

export interface BrokerOptions {
  readonly observers?: readonly BrokerObserver[]
  /** Copies messages to other channels; its table can be replaced while the broker runs. @default nothing is routed */
  readonly routing?: Routing
  /**
   * What the account of a caller may hold; asked when it is about to hold more. It does not apply to operators nor to the
   * broker's own parts.
   * @default no limits
   */
  readonly limitsOf?: (caller: Caller) => LimitsOfCaller
  /** A caller met one of its limits, and was refused. What it throws is dropped. */
  readonly onLimit?: (name: CallerLimitName, caller: Caller) => void
  /** What callers may do (S4); its policy can be replaced while the broker runs. @default everything */
  readonly authorization?: Authorization
}

/** A broker, and the two ways to it that are not for requests of tools and agents. */
export interface CreatedBroker {
  readonly broker: Broker
  /** The handle for the broker's own parts (agent registry, gateway, audit): it alone reaches channels in `_AGENTS_.`. */
  readonly system: BrokerHandle
  /** The broker for the management listener, where roles decide what a caller may do (S3) and not the policy. */
  readonly operators: Broker
}

/** The identity under which the broker's own parts use channels. */
const SYSTEM: Caller = Object.freeze({ clientId: 'signalbox' })

/**
 * Puts a Broker over an engine. Hand `system` and `operators` out at composition time only; nothing leads from `broker`,
 * and so from a request, to them.
 */
export function createBroker(engine: Engine, options: BrokerOptions = {}): CreatedBroker {
  const { limitsOf, onLimit = () => {}, observers = [], routing } = options
  const limits = limitsOf && new CallerUsage(engine, { limitsOf, onLimit })
  const context: BrokerContext = { engine, observers: new Observers(observers), routing, limits, limited: true }
  return {
    broker: new Broker(context, options.authorization),
    system: new BrokerHandle(new Access(context, SYSTEM, true, undefined)),
    operators: new Broker({ ...context, limited: false }, undefined, options.authorization),
  }
}
