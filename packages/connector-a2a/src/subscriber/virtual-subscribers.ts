import type { ReplyInput, RequestMessage, Subscription } from '@signalbox/broker-core'
import { keepSubscribed } from '@signalbox/broker-core/internal'
import type { AgentCard, AgentConnections } from '@signalbox/registry'
import { AgentTarget, isParkable } from '@signalbox/registry'

import type { AgentLookup } from '../options.ts'
import { agentChannel, decodeAgentQuery, LOG_CHANNEL, WIRE_CHANNEL } from '../requests/agent-query.ts'
import { encodeAgentReply } from '../requests/agent-reply.ts'
import { AGENT_GONE, SHUTTING_DOWN } from './agent-failures.ts'
import type { ServingNode } from './served-agent.ts'
import { ServedAgent } from './served-agent.ts'

/** A subscription that is renewed when it fails or when the engine ends it. */
interface KeptSubscription {
  /** Ends it. */
  readonly ended: AbortController
  /** Resolves when no delivery begins any more. */
  readonly closed: Promise<void>
}

/** A virtual subscriber: an agent, and the subscription to its Query channel while it is registered. */
interface VirtualSubscriber {
  readonly agent: ServedAgent
  subscription: KeptSubscription | undefined
  /** The timer that ends the subscription of a removed agent. */
  lingering: NodeJS.Timeout | undefined
}

/**
 * The time for which a removed agent's channel is still served, in ms. A request in transit is then
 * answered at once, instead of waiting for a subscriber until its deadline.
 */
const LINGER_MS = 2_000

/** A node may serve many agents, so their attempts during a long outage are rare. */
const BACKOFF = { firstMs: 500, longestMs: 30_000 }

const NO_INSTANCES: ReadonlyMap<string, number> = new Map()

/** Serves the Query channel of every registered agent, while it is registered. */
export class VirtualSubscribers {
  readonly #node: ServingNode
  readonly #registry: AgentLookup
  readonly #connections: AgentConnections
  readonly #byId = new Map<string, VirtualSubscriber>()
  /** Subscriptions that are being closed. */
  readonly #closing = new Set<Promise<void>>()
  readonly #unfollow: () => void
  /** Requests to all agents whose version of A2A matters. */
  readonly #wire: KeptSubscription
  /** Requests to all agents whose answers are kept; undefined if this node keeps none. */
  readonly #logged: KeptSubscription | undefined

  constructor(registry: AgentLookup, node: ServingNode, connections: AgentConnections) {
    this.#node = node
    this.#registry = registry
    this.#connections = connections
    this.#unfollow = registry.onChange(({ agentId, card }) => {
      if (card === undefined) this.#remove(agentId)
      else this.#serve(card)
    })
    for (const card of registry.list({})) this.#serve(card)
    this.#wire = this.#serveAll(WIRE_CHANNEL)
    this.#logged = node.runs && this.#serveAll(LOG_CHANNEL)
  }

  /** Returns an agent that this node serves, and its card; undefined for any other. */
  find(agentId: string): { readonly agent: ServedAgent; readonly card: AgentCard } | undefined {
    const card = this.#registry.get(agentId)
    const agent = this.#byId.get(agentId)?.agent
    return card === undefined || agent === undefined ? undefined : { agent, card }
  }

  /** Returns the number of calls and streams under way for an agent on this node. */
  inFlight(agentId: string): number {
    return this.#byId.get(agentId)?.agent.inFlight ?? 0
  }

  /** Returns the calls and streams under way for each instance of an agent on this node, by instance_id. */
  inFlightByInstance(agentId: string): ReadonlyMap<string, number> {
    return this.#byId.get(agentId)?.agent.inFlightByInstance() ?? NO_INSTANCES
  }

  /** The number of agents served, including removed agents with calls under way. */
  get size(): number {
    return this.#byId.size
  }

  /**
   * Stops accepting Queries, waits up to `graceMs` for those under way, then aborts them.
   * @param stop Aborts {@link ServingNode.stopped}
   */
  async close(graceMs: number, stop: () => void): Promise<void> {
    this.#unfollow()
    for (const subscriber of this.#byId.values()) this.#unsubscribe(subscriber)
    this.#close(this.#wire)
    if (this.#logged !== undefined) this.#close(this.#logged)
    await Promise.all(this.#closing)
    const { calls, inFlight } = this.#node
    if (!(await inFlight.idleWithin(graceMs))) {
      stop()
      for (const call of calls) call.abort(SHUTTING_DOWN)
      await inFlight.idleWithin(LAST_MS)
    }
    stop()
    void this.#connections.close()
  }

  #serve(card: AgentCard): void {
    const { agent_id: id } = card
    // Its inbox ends the tasks whose time is over, also when the agent is not called.
    if (isParkable(card)) this.#node.inbox?.()
    const subscriber = this.#byId.get(id) ?? this.#add(card)
    subscriber.agent.update(card, (url) => this.#targetOf(url, `client:${card?.registered_by}`))
    if (!subscriber.agent.registered) {
      this.#forgetIfIdle(id)
      return
    }
    clearTimeout(subscriber.lingering)
    subscriber.subscription ??= this.#keep(() =>
      this.#node.system.queries.subscribe(agentChannel(id), {}, (request) => {
        // A closing subscription may still receive requests for the agent's next registration.
        const { agent } = this.#byId.get(id) ?? subscriber
        return agent.serve(request)
      }),
    )
  }

  #targetOf(url: string, account: string): AgentTarget | undefined {
    try {
      return new AgentTarget(url, account, this.#connections)
    } catch (error) {
      // The registry has validated the URL, but a node of another version may accept other URLs.
      this.#node.failed(error)
      return undefined
    }
  }

  #serveAll(channel: string): KeptSubscription {
    return this.#keep(() => this.#node.system.queries.subscribe(channel, {}, (request) => this.#serveOne(request)))
  }

  /** @throws TypeError for a Query that the gateway did not encode */
  async #serveOne(request: RequestMessage): Promise<ReplyInput> {
    const query = decodeAgentQuery(request)
    const { agentId } = query.wire ?? query.log ?? {}
    if (agentId === undefined) throw new TypeError('not a request to an agent')
    // Another node may know of a registration first.
    if (!this.#byId.has(agentId)) await awaitRegistration(this.#registry, agentId)
    const subscriber = this.#byId.get(agentId)
    return encodeAgentReply(subscriber === undefined ? AGENT_GONE : await subscriber.agent.answer(query, request))
  }

  #add(card: AgentCard): VirtualSubscriber {
    const { agent_id: id } = card
    const agent = new ServedAgent(this.#node, card, () => {
      if (!agent.registered) this.#forgetIfIdle(id)
    })
    const subscriber: VirtualSubscriber = { agent, subscription: undefined, lingering: undefined }
    this.#byId.set(id, subscriber)
    return subscriber
  }

  #remove(id: string): void {
    const subscriber = this.#byId.get(id)
    if (subscriber === undefined) return
    subscriber.agent.update(undefined, () => undefined)
    clearTimeout(subscriber.lingering)
    subscriber.lingering = setTimeout(() => {
      this.#unsubscribe(subscriber)
      this.#forgetIfIdle(id)
    }, LINGER_MS)
    subscriber.lingering.unref()
  }

  /**
   * Keeps agents with calls under way: the agent may register again, and its concurrency limit
   * still holds (R9).
   */
  #forgetIfIdle(id: string): void {
    const subscriber = this.#byId.get(id)
    if (subscriber?.subscription === undefined && subscriber?.agent.inFlight === 0) this.#byId.delete(id)
  }

  #unsubscribe(subscriber: VirtualSubscriber): void {
    clearTimeout(subscriber.lingering)
    const { subscription } = subscriber
    if (subscription === undefined) return
    subscriber.subscription = undefined
    this.#close(subscription)
  }

  #keep(subscribe: () => Promise<Subscription>): KeptSubscription {
    const ended = new AbortController()
    const failed = (error: unknown, failures: number): void => {
      if (failures === 1) this.#node.failed(error)
    }
    return { ended, closed: keepSubscribed(subscribe, { signal: ended.signal, failed, backoff: BACKOFF }) }
  }

  #close({ ended, closed }: KeptSubscription): void {
    ended.abort()
    const closing = closed.finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }
}

/** The time for aborted calls to send their replies, in ms. */
const LAST_MS = 1_000

/** The longest wait for the news of a registration that the engine already has, in ms. */
const LONGEST_WAIT_MS = 2_000

/**
 * Resolves when this node follows the registration of an agent that another node knows already, or
 * at once if the agent is not registered.
 * @throws BrokerError ENGINE_UNAVAILABLE
 */
async function awaitRegistration(
  registry: Pick<AgentLookup, 'find' | 'get' | 'onChange'>,
  agentId: string,
): Promise<void> {
  const card = await registry.find(agentId)
  if (card === undefined || registry.get(agentId) !== undefined) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const unfollow = registry.onChange((change) => {
    if (change.agentId === agentId) resolve()
  })
  const timer = setTimeout(resolve, LONGEST_WAIT_MS)
  timer.unref()
  await promise
  clearTimeout(timer)
  unfollow()
}
