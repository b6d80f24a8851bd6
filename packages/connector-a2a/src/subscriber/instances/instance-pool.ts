import { createHash } from 'node:crypto'

import type { AgentCard, AgentTarget } from '@signalbox/registry'
import { agentInstances } from '@signalbox/registry'

/** The id of the only instance of an agent that was registered without instances. */
const ONLY = ''

/** The instances of one agent on this node, and the choice between them. */
export class InstancePool {
  readonly #most: number
  /** In the order of the last choices. Includes instances that have left, while calls to them are under way. */
  readonly #byId = new Map<string, ServedInstance>()
  #registered = 0

  /** @param most The maximum number of calls and streams under way to one instance (AgentMaxConcurrency) */
  constructor(most: number) {
    this.#most = most
  }

  /** The number of registered instances. */
  get size(): number {
    return this.#registered
  }

  /** Returns the calls and streams under way by instance_id; empty for an agent without instances. */
  inFlight(): ReadonlyMap<string, number> {
    const named = [...this.#byId].filter(([id, { target }]) => id !== ONLY && target !== undefined)
    return new Map(named.map(([id, { inFlight }]) => [id, inFlight]))
  }

  /**
   * Takes over the instances of a card; of no card: none.
   * @param targetOf Parses a url
   */
  update(card: AgentCard | undefined, targetOf: (url: string) => AgentTarget | undefined): void {
    const urls = new Map(card === undefined ? [] : urlsOf(card))
    for (const instance of this.#byId.values()) {
      if (!urls.has(instance.id)) this.#leave(instance)
    }
    for (const [id, url] of urls) {
      const known = this.#byId.get(id)
      if (known?.target?.url === url) continue
      const target = targetOf(url)
      if (target === undefined) continue
      if (known === undefined) this.#byId.set(id, new ServedInstance(id, target))
      else {
        known.target = target
        known.answered()
      }
    }
    this.#registered = [...this.#byId.values()].filter(({ target }) => target !== undefined).length
  }

  /** Returns a registered instance. */
  get(id: string): ServedInstance | undefined {
    const instance = this.#byId.get(id)
    return instance?.target === undefined ? undefined : instance
  }

  /** Returns true if the policy allows the address of an instance. */
  get permitted(): boolean {
    for (const { target } of this.#byId.values()) if (target?.permitted === true) return true
    return false
  }

  /**
   * Returns the instance with the fewest calls under way; of several, the one that was chosen longest ago. Passes over
   * instances that could not be reached, unless no other is left. Undefined if every instance has its maximum of calls.
   */
  choose(except?: ReadonlySet<ServedInstance>): ServedInstance | undefined {
    const now = performance.now()
    let best: ServedInstance | undefined
    for (const instance of this.#byId.values()) {
      if (instance.inFlight >= this.#most || except?.has(instance) === true) continue
      if (instance.target?.permitted !== true) continue
      if (best === undefined || isBetter(instance, best, now)) best = instance
    }
    if (best !== undefined && this.#byId.size > 1) {
      this.#byId.delete(best.id)
      this.#byId.set(best.id, best)
    }
    return best
  }

  /**
   * Returns the instance that a context prefers: the same on every node, while the same instances can be reached. Another
   * instance that comes or leaves moves few contexts (rendezvous hashing). Undefined if it has its maximum of calls.
   */
  preferred(contextId: string): ServedInstance | undefined {
    const now = performance.now()
    let best: ServedInstance | undefined
    let highest = ''
    for (const instance of this.#byId.values()) {
      if (instance.target?.permitted !== true || instance.pausedUntil > now) continue
      const weight = createHash('sha256').update(`${contextId} ${instance.id}`).digest('hex')
      if (weight > highest) [best, highest] = [instance, weight]
    }
    return best !== undefined && this.hasRoom(best) ? best : undefined
  }

  /** Returns true if an instance may get one more call. */
  hasRoom({ inFlight }: ServedInstance): boolean {
    return inFlight < this.#most
  }

  /** Call it when a call to the instance has ended. Drops an instance that has left. */
  ended(instance: ServedInstance): void {
    if (instance.target === undefined) this.#leave(instance)
  }

  /** Calls that are under way count when the instance registers again (R9). */
  #leave(instance: ServedInstance): void {
    instance.target = undefined
    if (instance.inFlight === 0 && this.#byId.get(instance.id) === instance) this.#byId.delete(instance.id)
  }
}

function isBetter(one: ServedInstance, other: ServedInstance, now: number): boolean {
  const [paused, otherPaused] = [one.pausedUntil > now, other.pausedUntil > now]
  if (paused !== otherPaused) return otherPaused
  if (paused) return one.pausedUntil < other.pausedUntil
  return one.inFlight < other.inFlight
}

function urlsOf(card: AgentCard): readonly (readonly [id: string, url: string])[] {
  const instances = agentInstances(card)
  // A pull agent has no url: it is never called.
  if (instances.length === 0) return card.url === undefined ? [] : [[ONLY, card.url]]
  return instances.map(({ instance_id, url }) => [instance_id, url])
}

/** The time for which an instance is passed over after a failed connection, in ms. Doubles from the first to the last. */
const FIRST_PAUSE_MS = 1_000
const LAST_PAUSE_MS = 10_000

/** One instance of an agent on this node. An agent without instances is its own only instance. */
export class ServedInstance {
  readonly id: string
  /** Undefined when the instance is not registered any more. */
  target: AgentTarget | undefined
  /** The number of calls and streams under way. */
  inFlight = 0
  #pauseMs = 0
  #pausedUntil = 0

  constructor(id: string, target: AgentTarget) {
    this.id = id
    this.target = target
  }

  /** The monotonic time until which calls prefer other instances; 0 for an instance that answers. */
  get pausedUntil(): number {
    return this.#pausedUntil
  }

  /** Records that the instance answered a call. */
  answered(): void {
    this.#pauseMs = this.#pausedUntil = 0
  }

  /**
   * Records that the instance could not be reached. Without the pause, a dead instance would get every call: it has
   * the fewest under way.
   */
  unreached(): void {
    const now = performance.now()
    // The calls that were under way fail at the same time, for one reason.
    if (now < this.#pausedUntil) return
    this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, FIRST_PAUSE_MS), LAST_PAUSE_MS)
    this.#pausedUntil = now + this.#pauseMs
  }
}

/** The place of one call among the calls of an instance. The call may move to another instance. */
export class CallPlace {
  readonly #pool: InstancePool
  readonly #asked = new Set<ServedInstance>()
  #instance: ServedInstance
  #target: AgentTarget | undefined

  constructor(pool: InstancePool, instance: ServedInstance) {
    this.#pool = pool
    this.#instance = instance
    this.#enter(instance)
  }

  get instance(): ServedInstance {
    return this.#instance
  }

  /** The address of the instance when the call came to it. */
  get target(): AgentTarget | undefined {
    return this.#target
  }

  /** Moves the call to an instance that it has not been at. Returns false if there is none, or each has its maximum. */
  moveOn(): boolean {
    const next = this.#pool.choose(this.#asked)
    if (next === undefined) return false
    this.leave()
    this.#enter(next)
    return true
  }

  /** Ends the call. Call it once. */
  leave(): void {
    this.#instance.inFlight--
    this.#pool.ended(this.#instance)
  }

  #enter(instance: ServedInstance): void {
    this.#instance = instance
    this.#target = instance.target
    this.#asked.add(instance)
    instance.inFlight++
  }
}
