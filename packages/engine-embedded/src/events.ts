import type {
  Message,
  OutgoingMessage,
  SubscribeOptions,
  Subscription,
  EventEngine,
} from '@signalbox/broker-core/engine'
import {
  isReservedChannel,
  isWildcardPattern,
  messageSize,
  OpenSubscription,
  PatternIndex,
  toMessage,
  unavailable,
} from '@signalbox/broker-core/engine'
import { MultiMap } from '@signalbox/broker-core/internal'

import type { ChannelRegistry, LiveChannel } from './channel-registry.ts'
import type { EmbeddedEngineProblem } from './options.ts'

interface Subscriber {
  readonly pattern: string
  readonly group: string | undefined
  readonly listener: (event: Message) => void
  readonly subscription: OpenSubscription
}

/** The subscribers of one channel: all subscribers without a group, and one subscriber of each group in rotation. */
interface EventRoute {
  readonly each: readonly Subscriber[]
  readonly groups: readonly { readonly members: readonly Subscriber[]; next: number }[]
}

/**
 * The route of a channel of the broker without subscribers. Its events leave no trace: each run of an agent has its own
 * channel, which mostly has none.
 */
const UNHEARD: EventRoute = { each: [], groups: [] }

/** The time for which departures of wildcard subscribers are collected before they count as activity, in ms. */
const DEPARTURES_MS = 250

/** The maximum number of cached routes. Channels of streams exist only for a short time. */
const MAX_ROUTES = 4_096

/** The events of the embedded engine, passed from publisher to subscribers in memory. */
export class EmbeddedEvents implements EventEngine {
  readonly #registry: ChannelRegistry
  readonly #now: () => number
  readonly #onProblem: (problem: EmbeddedEngineProblem) => void
  readonly #literal = new MultiMap<string, Subscriber>()
  readonly #wildcard = new Set<Subscriber>()
  readonly #wildcardIndex = new PatternIndex<Subscriber>()
  /**
   * The patterns of wildcard subscribers that left. Many may leave together, and one pass over the channels serves all
   * of them.
   */
  readonly #departed = new Set<string>()
  #departedAt = 0
  #departures: NodeJS.Timeout | undefined
  readonly #routes = new Map<string, EventRoute>()
  /** Events that a listener published. They wait here, so that all subscribers get events in the same order. */
  readonly #queue: { readonly channel: LiveChannel; readonly event: Message; readonly size: number }[] = []
  #dispatching = false
  #closed = false

  constructor(registry: ChannelRegistry, now: () => number, onProblem: (problem: EmbeddedEngineProblem) => void) {
    this.#registry = registry
    this.#now = now
    this.#onProblem = onProblem
  }

  async publish(name: string, message: OutgoingMessage): Promise<void> {
    if (this.#closed) throw unavailable('it is closed')
    if (isReservedChannel(name) && this.#routeOf(name) === UNHEARD) return
    const channel = this.#registry.ensure('events', name)
    const size = messageSize(message)
    this.#registry.received(channel, size)
    const event = toMessage(message, { channel: name, timestamp: this.#now() })
    this.#queue.push({ channel, event, size })
    if (this.#dispatching) return
    this.#dispatching = true
    try {
      for (let next = this.#queue.shift(); next; next = this.#queue.shift()) {
        this.#dispatch(next.channel, next.event, next.size)
      }
    } finally {
      this.#dispatching = false
    }
  }

  #dispatch(channel: LiveChannel, event: Message, size: number): void {
    const route = this.#routeOf(event.channel)
    let deliveries = 0
    for (const subscriber of route.each) if (this.#deliver(subscriber, event)) deliveries++
    for (const group of route.groups) {
      // The listener that was just called may have closed subscribers; then the next one gets the event.
      for (let tries = 0; tries < group.members.length; tries++) {
        const member = group.members[group.next++ % group.members.length]
        if (!member || !this.#deliver(member, event)) continue
        deliveries++
        break
      }
    }
    if (deliveries > 0) this.#registry.delivered(channel, deliveries, deliveries * size)
  }

  #deliver({ subscription, listener }: Subscriber, event: Message): boolean {
    if (subscription.ended) return false
    try {
      listener(event)
    } catch (error) {
      this.#onProblem({ kind: 'listener', message: 'the listener of a subscription to events threw', error })
    }
    return true
  }

  #routeOf(channel: string): EventRoute {
    const known = this.#routes.get(channel)
    if (known) return known
    const matching = [...this.#literal.get(channel), ...this.#wildcardIndex.matching(channel)]
    if (matching.length === 0 && isReservedChannel(channel)) return UNHEARD
    const groups = Map.groupBy(
      matching.filter(({ group }) => group !== undefined),
      ({ group }) => group,
    )
    const route = {
      each: matching.filter(({ group }) => group === undefined),
      groups: [...groups.values()].map((members) => ({ members, next: 0 })),
    }
    if (this.#routes.size >= MAX_ROUTES) this.#routes.clear()
    this.#routes.set(channel, route)
    return route
  }

  async subscribe(
    pattern: string,
    { group, signal }: SubscribeOptions,
    listener: (event: Message) => void,
  ): Promise<Subscription> {
    signal?.throwIfAborted()
    if (this.#closed) throw unavailable('it is closed')
    const wildcard = isWildcardPattern(pattern)
    if (!wildcard) this.#registry.ensure('events', pattern).subscribers++
    const subscription = new OpenSubscription(signal, () => this.#remove(subscriber, wildcard))
    const subscriber: Subscriber = { pattern, group, listener, subscription }
    if (wildcard) {
      this.#wildcard.add(subscriber)
      this.#wildcardIndex.add(pattern, subscriber)
      this.#routes.clear()
    } else {
      this.#literal.add(pattern, subscriber)
      this.#routes.delete(pattern)
    }
    return subscription
  }

  #remove(subscriber: Subscriber, wildcard: boolean): void {
    const { pattern } = subscriber
    if (wildcard) {
      this.#wildcard.delete(subscriber)
      this.#wildcardIndex.delete(pattern, subscriber)
      this.#routes.clear()
      this.#departed.add(pattern)
      this.#departedAt = this.#now()
      this.#departures ??= setTimeout(() => this.#touchDeparted(), DEPARTURES_MS).unref()
      return
    }
    this.#literal.delete(pattern, subscriber)
    this.#routes.delete(pattern)
    const channel = this.#registry.get('events', pattern)
    if (!channel) return
    channel.subscribers = this.#literal.get(pattern).size
    this.#registry.touch(channel)
  }

  /** Records the departure of subscribers as activity. */
  #touchDeparted(): void {
    clearTimeout(this.#departures)
    this.#departures = undefined
    if (this.#departed.size === 0) return
    const departed = new PatternIndex<string>()
    for (const pattern of this.#departed) departed.add(pattern, pattern)
    this.#departed.clear()
    for (const channel of this.#registry.all('events')) {
      if (departed.count(channel.name) > 0) this.#registry.touch(channel, this.#departedAt)
    }
  }

  /** Returns the number of wildcard subscribers that get the channel's events, without subscribers by name. */
  wildcardSubscribers(channel: string): number {
    this.#touchDeparted()
    return this.#wildcardIndex.count(channel)
  }

  /** Counts the subscribers of a deleted channel again: they remain, and the next event creates the channel. */
  channelCreated(channel: LiveChannel): void {
    channel.subscribers = this.#literal.get(channel.name).size
  }

  close(): void {
    this.#closed = true
    for (const { subscription } of [...this.#wildcard, ...this.#literal.values()]) {
      subscription.end(unavailable('it is closed'))
    }
    clearTimeout(this.#departures)
  }
}
