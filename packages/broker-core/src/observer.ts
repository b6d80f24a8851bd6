import type { PolicyAction, ResourceType } from './authorization/policy.ts'
import type { Caller } from './caller.ts'
import type { ChannelType } from './channel.ts'
import type { RequestType } from './engine/request-engine.ts'
import type { BrokerErrorCode } from './errors.ts'
import type { OutgoingMessage } from './message.ts'
import type { RoutedCopy, RoutingFailure } from './routing/routing.ts'

/** An action on a channel, as metrics and the audit log name it. */
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
  | 'pause'
  | 'settle'

/** The reason for which a receiver waits although messages may be there. */
export type GateReason = 'paused' | 'rate' | 'in_flight'

/** The end of a command or query. */
export type RequestOutcome = 'executed' | 'rejected' | 'INTERNAL' | BrokerErrorCode

/** A subscription, or a receive that waits: until it ends, its caller can get messages of the channel. */
export interface Attachment {
  readonly kind: 'subscriber' | 'responder' | 'receiver'
  readonly type: ChannelType
  /** The name of the channel, or the pattern of a subscription to events. */
  readonly channel: string
  readonly group: string | undefined
  readonly caller: Caller
}

/**
 * Observes the messages and calls of the Broker: statistics, metrics, the audit log and the live monitor are observers.
 * The Broker calls the methods synchronously on the message path: they must be fast, and their exceptions are ignored.
 */
export interface BrokerObserver {
  /** Reports an accepted message; a message to a queue or an events store is durable. */
  accepted?(type: ChannelType, channel: string, caller: Caller, message: OutgoingMessage): void
  /** Reports a message that was delivered to a receiver, reader or subscriber. */
  delivered?(type: ChannelType, channel: string, caller: Caller, message: OutgoingMessage): void
  /**
   * Reports the end of a command or query that was accepted before.
   * @param outcome A code of a Broker error, or `INTERNAL`, if there is no answer
   */
  answered?(type: RequestType, channel: string, id: string, outcome: RequestOutcome): void
  /** Reports that a channel was created, deleted or purged. */
  managed?(action: 'create' | 'delete' | 'purge', type: ChannelType, channel: string, caller: Caller): void
  /** Reports a call that failed with a Broker error. */
  failed?(action: Action, type: ChannelType | undefined, channel: string, caller: Caller, code: BrokerErrorCode): void
  /** Reports an action that the policy denied. For agents, `channel` is the agent_id. */
  denied?(action: PolicyAction, type: ResourceType, channel: string, caller: Caller): void
  /** Reports a subscription that was opened, or a receive that begins to wait. */
  attached?(attachment: Attachment): void
  /** Reports the end of an attachment, with the same object. */
  detached?(attachment: Attachment): void
  /** Reports a receive that had to wait, or got nothing, because of the settings for consumers or a pause. */
  gateWaited?(reason: GateReason): void
  /**
   * Reports a copy that the routing table made; in a queue or an events store it is durable. {@link accepted} reports
   * it too.
   */
  routed?(copy: RoutedCopy, caller: Caller): void
  /** Reports that a routing rule made no copy of a message. The send itself succeeded. */
  routingFailed?(failure: RoutingFailure, caller: Caller): void
}

/** Calls every observer and ignores their exceptions. */
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

  /** `true` if an observer wants the ends of commands and queries. */
  get observesAnswers(): boolean {
    return this.#list.some((observer) => observer.answered !== undefined)
  }

  answered(type: RequestType, channel: string, id: string, outcome: RequestOutcome): void {
    this.#notify((observer) => observer.answered?.(type, channel, id, outcome))
  }

  managed(action: 'create' | 'delete' | 'purge', type: ChannelType, channel: string, caller: Caller): void {
    this.#notify((observer) => observer.managed?.(action, type, channel, caller))
  }

  failed(action: Action, type: ChannelType | undefined, channel: string, caller: Caller, code: BrokerErrorCode): void {
    this.#notify((observer) => observer.failed?.(action, type, channel, caller, code))
  }

  denied(action: PolicyAction, type: ResourceType, channel: string, caller: Caller): void {
    this.#notify((observer) => observer.denied?.(action, type, channel, caller))
  }

  attached(attachment: Attachment): void {
    this.#notify((observer) => observer.attached?.(attachment))
  }

  detached(attachment: Attachment): void {
    this.#notify((observer) => observer.detached?.(attachment))
  }

  gateWaited(reason: GateReason): void {
    this.#notify((observer) => observer.gateWaited?.(reason))
  }

  routed(copy: RoutedCopy, caller: Caller): void {
    this.#notify((observer) => observer.routed?.(copy, caller))
  }

  routingFailed(failure: RoutingFailure, caller: Caller): void {
    this.#notify((observer) => observer.routingFailed?.(failure, caller))
  }

  /** For reports that are not made for each message, because it creates a function for each call. */
  #notify(report: (observer: BrokerObserver) => void): void {
    for (const observer of this.#list) {
      try {
        report(observer)
      } catch {}
    }
  }
}
