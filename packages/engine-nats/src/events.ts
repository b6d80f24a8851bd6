import type {
  Message,
  OutgoingMessage,
  SubscribeOptions,
  Subscription,
  EventEngine,
} from '@signalbox/broker-core/engine'
import {
  decodeEvent,
  encodeEvent,
  isWildcardPattern,
  messageSize,
  OpenSubscription,
  PatternIndex,
  toMessage,
  unavailable,
} from '@signalbox/broker-core/engine'
import type { Subscription as Interest } from '@nats-io/transport-node'

import { liveKey } from './channels/live-channels.ts'
import type { Parts } from './parts.ts'
import { hash } from './subjects.ts'

type Listener = (event: Message) => void

/** One subscription at the servers, shared by all local subscriptions without a group to the same pattern. */
interface Shared {
  readonly interest: Interest
  readonly listeners: Set<Listener>
}

/** The number of published bytes after which the node waits for the servers to receive them. */
const FLUSH_BYTES = 1024 * 1024

/**
 * Events on NATS: core subjects with one token for each token of the channel, so the servers resolve
 * wildcards.
 */
export class NatsEvents implements EventEngine {
  readonly #parts: Parts
  readonly #shared = new Map<string, Shared>()
  readonly #subscriptions = new Map<OpenSubscription, string>()
  readonly #wildcards = new PatternIndex<OpenSubscription>()
  #unflushed = 0
  #flushing: Promise<void> | undefined
  #closed = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async publish(name: string, message: OutgoingMessage): Promise<void> {
    const { connection, liveChannels, counterTable, subjects, publisher } = this.#parts
    if (this.#closed) throw unavailable('it is closed')
    // Awaited only if necessary, so that events keep the order in which they were published.
    if (!connection.connected) await connection.ready()
    const payload = encodeEvent({ message, channel: name, sentAt: Date.now() })
    publisher.assertFits(payload)
    liveChannels.ensure('events', name)
    connection.nc.publish(subjects.event(name), payload)
    counterTable.received(liveKey('events', name), 1, messageSize(message))
    this.#unflushed += payload.byteLength
    if (this.#unflushed < FLUSH_BYTES) return
    // A publisher that is faster than the servers waits here.
    this.#unflushed = 0
    await this.#flush()
  }

  #flush(): Promise<void> {
    this.#flushing ??= this.#parts.connection
      .call(() => this.#parts.connection.nc.flush())
      .finally(() => (this.#flushing = undefined))
    return this.#flushing
  }

  async subscribe(pattern: string, { group, signal }: SubscribeOptions, listener: Listener): Promise<Subscription> {
    const { connection, liveChannels, counterTable } = this.#parts
    signal?.throwIfAborted()
    await connection.ready()
    const named = !isWildcardPattern(pattern)
    if (named) liveChannels.ensure('events', pattern)
    const deliver = this.#deliverer(listener, () => !subscription.ended)
    const stop = group === undefined ? this.#share(pattern, deliver) : this.#member(pattern, group, deliver)
    const subscription: OpenSubscription = new OpenSubscription(signal, () => {
      stop()
      this.#subscriptions.delete(subscription)
      if (named) counterTable.subscribers(liveKey('events', pattern), -1)
      else this.#wildcards.delete(pattern, subscription)
    })
    this.#subscriptions.set(subscription, pattern)
    if (named) counterTable.subscribers(liveKey('events', pattern), 1)
    else this.#wildcards.add(pattern, subscription)
    // Afterwards an event that is published on any node reaches the subscription.
    await connection.call(() => connection.nc.flush())
    return subscription
  }

  #deliverer(listener: Listener, isOpen: () => boolean): Listener {
    const { counterTable, liveChannels, settings } = this.#parts
    return (event) => {
      if (!isOpen()) return
      liveChannels.hear({ type: 'events', name: event.channel, exists: true })
      counterTable.delivered(liveKey('events', event.channel), 1, messageSize(event))
      try {
        listener(event)
      } catch (error) {
        settings.onProblem({ kind: 'listener', message: 'the listener of a subscription to events threw', error })
      }
    }
  }

  #share(pattern: string, listener: Listener): () => void {
    const subject = this.#parts.subjects.event(pattern)
    let shared = this.#shared.get(subject)
    if (!shared) {
      const listeners = new Set<Listener>()
      const interest = this.#interest(subject, undefined, (event) => {
        for (const each of listeners) each(event)
      })
      this.#shared.set(subject, (shared = { interest, listeners }))
    }
    const { listeners, interest } = shared
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
      if (listeners.size > 0) return
      this.#shared.delete(subject)
      interest.unsubscribe()
    }
  }

  #member(pattern: string, group: string, listener: Listener): () => void {
    const interest = this.#interest(this.#parts.subjects.event(pattern), hash(group), listener)
    return () => interest.unsubscribe()
  }

  #interest(subject: string, queue: string | undefined, listener: Listener): Interest {
    return this.#parts.connection.listen(
      subject,
      (message) => {
        const event = decodeEvent(message.data)
        if (event) listener(toMessage(event.message, { channel: event.channel, timestamp: event.sentAt }))
      },
      queue === undefined ? {} : { queue },
    )
  }

  /** Returns true when a subscription on this node names the channel. */
  isUsed(name: string): boolean {
    for (const pattern of this.#subscriptions.values()) if (pattern === name) return true
    return false
  }

  /** Returns the number of wildcard subscriptions on this node that match the channel. */
  wildcardSubscribers(channel: string): number {
    return this.#wildcards.count(channel)
  }

  close(): void {
    this.#closed = true
    for (const subscription of this.#subscriptions.keys()) subscription.end(unavailable('it is closed'))
  }
}
