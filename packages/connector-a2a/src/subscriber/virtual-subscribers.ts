import type { AgentCard } from '@signalbox/registry'
import { agentChannel } from '@signalbox/registry'

import type { AgentLookup } from '../agent-lookup.ts'
import type { AgentConnections } from './agent-connections.ts'
import { SHUTTING_DOWN } from './agent-failures.ts'
import { AgentTarget } from './agent-target.ts'
import { KeptSubscription } from './kept-subscription.ts'
import type { ServingNode } from './served-agent.ts'
import { ServedAgent } from './served-agent.ts'

/** A virtual subscriber: an agent, and its Query channel while it is registered. */
interface VirtualSubscriber {
  readonly agent: ServedAgent
  subscription: KeptSubscription | undefined
  /** Runs when the agent is not registered any more. */
  lingering: NodeJS.Timeout | undefined
}

/**
 * How long the channel of an agent that went is still served, in milliseconds: a request that was on its way is then told
 * so at once, instead of waiting out its deadline for a subscriber.
 */
const LINGER_MS = 2_000

/** Serves the Query channel of every registered agent, for as long as it is registered. */
export class VirtualSubscribers {
  readonly #node: ServingNode
  readonly #connections: AgentConnections
  readonly #byId = new Map<string, VirtualSubscriber>()
  /** Subscriptions that are being closed. */
  readonly #closing = new Set<Promise<void>>()
  readonly #unfollow: () => void

  constructor(registry: AgentLookup, node: ServingNode, connections: AgentConnections) {
    this.#node = node
    this.#connections = connections
    this.#unfollow = registry.onChange(({ agentId, card }) => {
      if (card === undefined) this.#remove(agentId)
      else this.#serve(card)
    })
    for (const card of registry.list({})) this.#serve(card)
  }

  /** Calls and streams that are under way for an agent on this node (R9). */
  inFlight(agentId: string): number {
    return this.#byId.get(agentId)?.agent.inFlight ?? 0
  }

  /** Agents that are served, those with calls left after they were removed included. */
  get size(): number {
    return this.#byId.size
  }

  /**
   * No Queries from here on; those under way have `graceMs` to finish and are broken off after that.
   * @param stop aborts {@link ServingNode.stopped}
   */
  async close(graceMs: number, stop: () => void): Promise<void> {
    this.#unfollow()
    for (const subscriber of this.#byId.values()) this.#unsubscribe(subscriber)
    await Promise.all(this.#closing)
    const { calls, inFlight } = this.#node
    if (!(await inFlight.idleWithin(graceMs))) {
      stop()
      for (const call of calls) call.abort(SHUTTING_DOWN)
      await inFlight.idleWithin(LAST_MS)
    }
    stop()
    this.#connections.close()
  }

  #serve({ agent_id: id, url }: AgentCard): void {
    const known = this.#byId.get(id)
    if (known?.subscription !== undefined && known.agent.target?.url === url) return
    let target: AgentTarget
    try {
      target = new AgentTarget(url, this.#connections)
    } catch (error) {
      // The registry has checked it; another node's may be of another opinion.
      this.#node.failed(error)
      return
    }
    const subscriber = known ?? this.#add(id, target)
    clearTimeout(subscriber.lingering)
    subscriber.agent.target = target
    subscriber.subscription ??= new KeptSubscription(
      () =>
        this.#node.system.queries.subscribe(agentChannel(id), {}, (request) => {
          // A subscription on its way out may still be handed what is meant for the agent's next registration.
          const { agent } = this.#byId.get(id) ?? subscriber
          return agent.serve(request)
        }),
      (error) => this.#node.failed(error),
    )
  }

  #add(id: string, target: AgentTarget): VirtualSubscriber {
    const agent = new ServedAgent(this.#node, target, () => {
      if (agent.target === undefined) this.#forgetIfIdle(id)
    })
    const subscriber: VirtualSubscriber = { agent, subscription: undefined, lingering: undefined }
    this.#byId.set(id, subscriber)
    return subscriber
  }

  #remove(id: string): void {
    const subscriber = this.#byId.get(id)
    if (subscriber === undefined) return
    subscriber.agent.target = undefined
    clearTimeout(subscriber.lingering)
    subscriber.lingering = setTimeout(() => {
      this.#unsubscribe(subscriber)
      this.#forgetIfIdle(id)
    }, LINGER_MS)
    subscriber.lingering.unref()
  }

  /** Calls that are still under way keep their place: the agent may come back, and its limit holds (R9). */
  #forgetIfIdle(id: string): void {
    const subscriber = this.#byId.get(id)
    if (subscriber?.subscription === undefined && subscriber?.agent.inFlight === 0) this.#byId.delete(id)
  }

  #unsubscribe(subscriber: VirtualSubscriber): void {
    clearTimeout(subscriber.lingering)
    const { subscription } = subscriber
    if (subscription === undefined) return
    subscriber.subscription = undefined
    const closing = subscription
      .close()
      .catch((error: unknown) => this.#node.failed(error))
      .finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }
}

/** What calls that were broken off are given to say so, in milliseconds. */
const LAST_MS = 1_000
