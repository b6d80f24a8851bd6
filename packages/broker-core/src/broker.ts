import type { Authorization } from './authorization/authorization.ts'
import type { PolicyAction, ResourceType } from './authorization/policy.ts'
import type { Caller, CallerLimitName, LimitsOfCaller } from './caller.ts'
import { CallerUsage } from './caller.ts'
import type { Engine, EngineHealth, EngineLimits, EngineStats, OtherNode } from './engine/engine.ts'
import type { BrokerError } from './errors.ts'
import type { BrokerContext } from './handle/access.ts'
import { Access } from './handle/access.ts'
import { ChannelCreations } from './handle/channel-creations.ts'
import { Channels } from './handle/channels.ts'
import { EventsStore } from './handle/events-store.ts'
import { Events } from './handle/events.ts'
import { Queues } from './handle/queues.ts'
import { Requests } from './handle/requests.ts'
import type { BrokerObserver } from './observer.ts'
import { Observers } from './observer.ts'
import type { OptionTypes } from './options.ts'
import { assertCaller, checkOptions, shown } from './options.ts'
import type { Routing } from './routing/routing.ts'
import type { SettingsEntry } from './settings/channel-settings.ts'
import { ConsumerGate } from './settings/consumer-gate.ts'
import { QueuePauses } from './settings/queue-pauses.ts'
import type { SettingsTable } from './settings/settings-table.ts'
import { OpenLeases } from './tracing/open-leases.ts'
import type { SpanParent, Tracing } from './tracing/tracing.ts'

/**
 * The broker for one verified caller, with one object for each channel type. Cheap enough to create for every request.
 */
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

  /** The tracing of the broker; undefined if nothing is traced. */
  get tracing(): Tracing | undefined {
    return this.#access.tracing
  }

  /** Returns the same handle for calls that are made within a span. */
  within(parent: SpanParent): BrokerHandle {
    return new BrokerHandle(this.#access.within(parent))
  }

  /**
   * Returns whether the policy and the credentials allow the caller the action on a channel. For agents, `channel` is
   * the agent_id.
   */
  permits(action: PolicyAction, type: ResourceType, channel: string): boolean {
    return this.#access.permits(action, type, channel)
  }

  /**
   * Returns whether any channel can exist on which the policy and the credentials allow the caller the action. False
   * only if there can be none.
   */
  mayPermit(action: PolicyAction, type: ResourceType): boolean {
    return this.#access.mayPermit(action, type)
  }

  /**
   * Checks like {@link permits}, and reports a denial to the observers. For actions outside the handle's own methods,
   * such as calling an agent, and to check a whole request before it starts.
   * @throws BrokerError FORBIDDEN
   */
  authorize(action: PolicyAction, type: ResourceType, channel: string): void {
    this.#access.authorize(action, type, channel)
  }

  /**
   * Checks that the caller's credentials allow an action whose result {@link permits} filters, such as a list of
   * agents, and reports a denial to the observers.
   * @throws BrokerError FORBIDDEN
   */
  requireCredentials(action: PolicyAction, type: ResourceType): void {
    this.#access.requireCredentials(action, [type])
  }

  /**
   * Watches something that was authorized and continues, such as an agent's stream. When a new policy no longer allows
   * it, calls back once and reports the denial to the observers. The returned function ends the watch.
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
 * The facade that every call passes, independent of its protocol. The Broker applies the rules; the engine stores. It
 * has no reference to the reserved channels; {@link createBroker} returns that access separately.
 */
export class Broker {
  /** The tracing of the broker; undefined if nothing is traced. */
  readonly tracing: Tracing | undefined
  readonly #context: BrokerContext
  readonly #authorization: Authorization | undefined
  readonly #policyOfSenders: Authorization | undefined

  /** @param policyOfSenders The policy that {@link onBehalfOf} applies. */
  constructor(context: BrokerContext, authorization?: Authorization, policyOfSenders = authorization) {
    this.tracing = context.tracing?.tracing
    this.#context = context
    this.#authorization = authorization
    this.#policyOfSenders = policyOfSenders
  }

  /** Returns a handle for a caller whose identity was verified. */
  as(caller: Caller): BrokerHandle {
    assertCaller(caller)
    return new BrokerHandle(new Access(this.#context, caller, false, this.#authorization))
  }

  /**
   * Returns a handle that acts in the name of a message's sender, for example for a redrive. The policy applies to the
   * sender, even if it does not apply to the caller that requested the action.
   */
  onBehalfOf(sender: Caller): BrokerHandle {
    return new BrokerHandle(new Access(this.#context, sender, false, this.#policyOfSenders))
  }

  /** Adds an observer; the returned function removes it. */
  observe(observer: BrokerObserver): () => void {
    return this.#context.observers.add(observer)
  }

  /** The settings of channels. Their entries can be replaced at any time. */
  get settings(): SettingsTable {
    return this.#context.engine.settings
  }

  /** Returns the reason why the engine cannot apply an entry of the settings now; undefined if there is none. */
  settingProblem(entry: SettingsEntry): Promise<string | undefined> {
    return this.#context.engine.settingProblem(entry)
  }

  /** The pauses of queues, other than those of the settings. */
  get pauses(): QueuePauses {
    return this.#context.pauses
  }

  /** Returns the end of the pause of a queue, in ms since the epoch; `undefined` if it is not paused. */
  pausedUntil(queue: string): number | undefined {
    return this.#context.gate.pausedUntil(queue)
  }

  /** Returns the number of queues that are paused. */
  pausedQueues(): Promise<number> {
    return this.#context.gate.pausedQueues()
  }

  /** The name and the declared limits of the engine. */
  get engine(): { readonly name: string; readonly limits: EngineLimits } {
    return this.#context.engine
  }

  health(): Promise<EngineHealth> {
    return this.#context.engine.health()
  }

  /** Returns the other nodes of the cluster that are alive; empty for an engine of one node. */
  otherNodes(): readonly OtherNode[] {
    return this.#context.engine.otherNodes?.() ?? []
  }

  stats(): Promise<EngineStats> {
    return this.#context.engine.stats()
  }
}

export interface BrokerOptions {
  readonly observers?: readonly BrokerObserver[]
  /** Copies messages to other channels. Its table can be replaced while the broker runs. @default no routing */
  readonly routing?: Routing | undefined
  /**
   * Returns the limits of a caller's account. The broker asks each time before the account gets more. Operators and the
   * broker's own parts are exempt.
   * @default no limits
   */
  readonly limitsOf?: (caller: Caller) => LimitsOfCaller
  /** Called when a call was refused because of a limit of the caller. Exceptions are ignored. */
  readonly onLimit?: (name: CallerLimitName, caller: Caller) => void
  /** The permissions of callers. The policy can be replaced while the broker runs. @default everything is allowed */
  readonly authorization?: Authorization | undefined
  /**
   * Records the messages and the requests of the broker's connectors as spans of a tracing system, such as
   * `openTelemetry()` of `@signalbox/broker-core/opentelemetry`.
   * @default nothing is traced
   */
  readonly tracing?: Tracing | undefined
}

/** A broker, and two handles to it that requests of tools and agents never reach. */
export interface CreatedBroker {
  readonly broker: Broker
  /**
   * The handle for the broker's own parts (agent registry, gateway, audit). Only it reaches channels in `_AGENTS_.`.
   */
  readonly system: BrokerHandle
  /** The broker for the management listener, where roles decide about permissions instead of the policy. */
  readonly operators: Broker
}

/** The identity under which the broker's own parts use channels. */
const SYSTEM: Caller = Object.freeze({ clientId: 'signalbox' })

const OPTION_TYPES: OptionTypes<BrokerOptions> = {
  observers: 'object',
  routing: 'object',
  limitsOf: 'function',
  onLimit: 'function',
  authorization: 'object',
  tracing: 'object',
}

/** @throws TypeError */
function checkEngine(engine: unknown): void {
  if (typeof engine === 'object' && engine !== null && 'limits' in engine) return
  throw new TypeError(
    `createBroker: engine: ${shown(engine)} is not allowed; allowed: an engine, such as await openEmbeddedEngine({ path: './data' })`,
  )
}

/**
 * Creates a Broker over an engine. Pass `system` and `operators` only to parts that need them, at composition time:
 * `broker`, and so a request, has no reference to them.
 * @throws TypeError for an argument of another type, and an unknown option
 */
export function createBroker(engine: Engine, options: BrokerOptions = {}): CreatedBroker {
  checkEngine(engine)
  checkOptions('createBroker', options, OPTION_TYPES)
  const { limitsOf, onLimit = () => {}, observers = [], routing, tracing } = options
  const limits = limitsOf && new CallerUsage(engine, { limitsOf, onLimit })
  const observed = new Observers(observers)
  const pauses = new QueuePauses()
  const gate = new ConsumerGate(engine, pauses, (reason) => observed.gateWaited(reason))
  const traced = tracing && { tracing, leases: new OpenLeases(engine.capabilities.leaseSurvivesNode) }
  const { creationsAtOnce } = engine.limits
  const creations = creationsAtOnce === 0 ? undefined : new ChannelCreations(creationsAtOnce)
  const shared = { engine, observers: observed, routing, limits, creations, gate, pauses, tracing: traced }
  const context: BrokerContext = { ...shared, limited: true, gated: true }
  return {
    broker: new Broker(context, options.authorization),
    system: new BrokerHandle(new Access(context, SYSTEM, true, undefined)),
    operators: new Broker({ ...shared, limited: false, gated: false }, undefined, options.authorization),
  }
}
