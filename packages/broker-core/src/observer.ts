import type { PolicyAction, ResourceType } from './authorization/vocabulary.ts'
import type { Caller } from './caller.ts'
import type { ChannelType } from './channel.ts'
import type { BrokerErrorCode } from './errors.ts'
import type { OutgoingMessage } from './message.ts'
import type { RoutedCopy, RoutingFailure } from './routing/report.ts'

/** What a caller does to a channel; the vocabulary of metrics and audit. */
export type Action =
  | 'send'
  | 'receive'
  | 'peek'
  | 'read'
  | 'subscribe'
  | 'respond'
  | 'list'
  | 'create'
  | 'delete'
  | 'purge'
  | 'settle'

/**
 * Sees what passes through the Broker: statistics, metrics, the audit log and the live monitor are observers. Methods
 * are called synchronously on the messaging path: they must be quick, and what they throw is dropped.
 */
export interface BrokerObserver {
  /** A message was accepted; for stored types: durable. */
  accepted?(type: ChannelType, channel: string, caller: Caller, message: OutgoingMessage): void
  /** A message was handed to a receiver, reader or subscriber. */
  delivered?(type: ChannelType, channel: string, caller: Caller, message: OutgoingMessage): void
  /** A channel was created, deleted or purged. */
  managed?(action: 'create' | 'delete' | 'purge', type: ChannelType, channel: string, caller: Caller): void
  /** A call failed with a Broker error. */
  failed?(action: Action, type: ChannelType | undefined, channel: string, caller: Caller, code: BrokerErrorCode): void
  /** The policy denied a caller something (S4); for agents the channel is the agent_id. */
  denied?(action: PolicyAction, type: ResourceType, channel: string, caller: Caller): void
  /** The routing table copied a caller's message; for stored types: durable. {@link accepted} saw the copy too. */
  routed?(copy: RoutedCopy, caller: Caller): void
  /** A rule of the routing table made no copy of a caller's message; the send itself succeeded. */
  routingFailed?(failure: RoutingFailure, caller: Caller): void
}

/** Calls every observer, and lets none of them disturb the messaging path. */
export class Observers {
  #list: readonly BrokerObserver[]

  constructor(list: readonly BrokerObserver[]) {
    this.#list = [...list]
  }

  /** Adds an observer; the returned function removes it. */
  add(observer: BrokerObserver): () => void {
    this.#list = [...this.#list, observer]
    return () => {
      this.#list = this.#list.filter((other) => other !== observer)
    }
  }

  accepted(type: ChannelType, channel: string, caller: Caller, message: OutgoingMessage): void {
    for (const observer of this.#list) {
      try {
        observer.accepted?.(type, channel, caller, message)
      } catch {}
    }
  }

  delivered(type: ChannelType, channel: string, caller: Caller, message: OutgoingMessage): void {
    for (const observer of this.#list) {
      try {
        observer.delivered?.(type, channel, caller, message)
      } catch {}
    }
  }

  managed(action: 'create' | 'delete' | 'purge', type: ChannelType, channel: string, caller: Caller): void {
    for (const observer of this.#list) {
      try {
        observer.managed?.(action, type, channel, caller)
      } catch {}
    }
  }

  failed(action: Action, type: ChannelType | undefined, channel: string, caller: Caller, code: BrokerErrorCode): void {
    for (const observer of this.#list) {
      try {
        observer.failed?.(action, type, channel, caller, code)
      } catch {}
    }
  }

  denied(action: PolicyAction, type: ResourceType, channel: string, caller: Caller): void {
    for (const observer of this.#list) {
      try {
        observer.denied?.(action, type, channel, caller)
      } catch {}
    }
  }

  routed(copy: RoutedCopy, caller: Caller): void {
    for (const observer of this.#list) {
      try {
        observer.routed?.(copy, caller)
      } catch {}
    }
  }

  routingFailed(failure: RoutingFailure, caller: Caller): void {
    for (const observer of this.#list) {
      try {
        observer.routingFailed?.(failure, caller)
      } catch {}
    }
  }
}
