import { randomUUID } from 'node:crypto'
import { Buffer } from 'node:buffer'

import type { Authorization } from '../authorization/authorization.ts'
import { GuardedSubscription } from '../authorization/guarded-subscription.ts'
import type { PolicyAction, ResourceType } from '../authorization/vocabulary.ts'
import type { Caller } from '../caller.ts'
import type { CallerUsage } from '../caller-limits.ts'
import type { ChannelType } from '../channel.ts'
import { assertChannelName, assertSubscriptionPattern, isReservedChannel, RESERVED_PREFIX } from '../channel.ts'
import type { Engine, Subscription } from '../engine.ts'
import { BrokerError, isBrokerError } from '../errors.ts'
import type { MessageInput, OutgoingMessage, Tags } from '../message.ts'
import type { Action, Observers } from '../observer.ts'
import type { Routing } from '../routing/routing.ts'

const NO_TAGS: Tags = Object.freeze({})

/** Engine, observers and limits that all handles of a broker share. */
export interface BrokerContext {
  readonly engine: Engine
  readonly observers: Observers
  /** Where accepted messages are copied to; undefined when nothing is ever routed. */
  readonly routing: Routing | undefined
  /** Counts what callers hold; undefined when nothing is limited. */
  readonly limits: CallerUsage | undefined
  /** Whether the limits hold for this broker's callers; what operators create does not count. */
  readonly limited: boolean
}

/**
 * The gate that every call on a handle passes: one place for the naming rules (C1), the reserved prefix (M8), the policy
 * (S4), message validation, the size limit (C4), and telling the observers how the call ended.
 */
export class Access {
  readonly engine: Engine
  readonly observers: Observers
  readonly routing: Routing | undefined
  readonly caller: Caller
  /** True for the broker's own handle, which may use reserved channels. */
  readonly internal: boolean
  /** The policy that the caller is subject to; undefined when there is none. */
  readonly #authorization: Authorization | undefined
  readonly #limits: CallerUsage | undefined
  /** False where the limits do not hold for the caller. */
  readonly #limited: boolean

  constructor(context: BrokerContext, caller: Caller, internal: boolean, authorization: Authorization | undefined) {
    this.engine = context.engine
    this.observers = context.observers
    this.routing = context.routing
    this.caller = caller
    this.internal = internal
    this.#authorization = authorization
    this.#limits = context.limits
    this.#limited = context.limited && !internal
  }

  /** Whether the caller is subject to a policy. */
  get governed(): boolean {
    return this.#authorization !== undefined
  }

  /** @throws BrokerError CHANNEL_INVALID, CHANNEL_RESERVED, FORBIDDEN */
  channel(action: PolicyAction, type: ChannelType, name: string): void {
    this.#reserved(name)
    assertChannelName(name)
    this.authorize(action, type, name)
  }

  /** For a subscription, which a pattern may let see many channels. @throws BrokerError as {@link channel} */
  pattern(action: PolicyAction, type: ChannelType, pattern: string): void {
    this.#reserved(pattern)
    assertSubscriptionPattern(pattern)
    const refusal = this.#refusal(action, type, pattern)
    if (refusal !== undefined) throw this.#denied(action, type, pattern, refusal)
  }

  /**
   * Runs what creates the channel when there is none; it then counts for the caller.
   * @throws BrokerError CALLER_LIMIT
   */
  creating<T>(type: ChannelType, name: string, work: () => Promise<T>): Promise<T> {
    const undo = this.reserve(type, name)
    if (undo === undefined) return work()
    // Apart from the work, which may wait for long, so that nothing of it is kept in memory here.
    const result = work()
    result.catch(undo)
    return result
  }

  /** Counts a channel that comes into being later, if at all. @throws BrokerError CALLER_LIMIT */
  reserve(type: ChannelType, name: string): (() => void) | undefined {
    return this.#limited ? this.#limits?.reserve(this.caller, type, name) : undefined
  }

  /** A channel does not exist any more. */
  deleted(type: ChannelType, name: string): void {
    this.#limits?.deleted(type, name)
  }

  /** Counts a request that waits for its answer; call what it returns when it has ended. @throws BrokerError CALLER_LIMIT */
  beginWaiting(): (() => void) | undefined {
    return this.#limited ? this.#limits?.beginWaiting(this.caller) : undefined
  }

  /** Opens a subscription that was allowed, and ends it when the policy changes and does not allow it any more (S4). */
  async subscription(
    action: PolicyAction,
    type: ChannelType,
    pattern: string,
    open: () => Promise<Subscription>,
  ): Promise<Subscription> {
    const authorization = this.#authorization
    if (authorization === undefined) return open()
    const subscription = await open()
    const refused = (): BrokerError | undefined => this.#refusal(action, type, pattern)
    const refusal = refused()
    if (refusal === undefined) {
      return new GuardedSubscription(subscription, authorization, refused, () =>
        this.observers.denied(action, type, pattern, this.caller),
      )
    }
    await subscription.close()
    throw this.#denied(action, type, pattern, refusal)
  }

  /** Whether the policy lets this caller do it. */
  permits(action: PolicyAction, type: ResourceType, channel: string): boolean {
    return this.#authorization?.permits(this.caller, action, type, channel) ?? true
  }

  /** Whether there may be a channel on which the policy lets this caller do it: false only when there is none. */
  mayPermit(action: PolicyAction, type: ResourceType): boolean {
    return this.#authorization?.mayPermit(this.caller, action, type) ?? true
  }

  /** As {@link permits}; a denial is told to the observers. @throws BrokerError FORBIDDEN */
  authorize(action: PolicyAction, type: ResourceType, channel: string): void {
    if (this.permits(action, type, channel)) return
    throw this.#denied(action, type, channel, forbidden(this.caller, action, type, channel))
  }

  /**
   * Watches over something that was allowed and goes on: calls back, once, when a new policy does not allow it any more,
   * and tells the observers. The returned function ends the watch.
   */
  whilePermitted(
    action: PolicyAction,
    type: ResourceType,
    channel: string,
    revoked: (refusal: BrokerError) => void,
  ): () => void {
    const unwatch = this.#authorization?.watch({
      allowed: () => this.permits(action, type, channel),
      revoke: () => {
        unwatch?.()
        revoked(this.#denied(action, type, channel, forbidden(this.caller, action, type, channel)))
      },
    })
    return unwatch ?? (() => {})
  }

  /** Whether this caller may know of the channel. */
  sees(type: ChannelType, channel: string): boolean {
    return this.internal || (!isReservedChannel(channel) && this.permits('list', type, channel))
  }

  #refusal(action: PolicyAction, type: ChannelType, pattern: string): BrokerError | undefined {
    if (this.#authorization?.permitsAll(this.caller, action, type, pattern) ?? true) return undefined
    return forbidden(this.caller, action, type, pattern)
  }

  #denied(action: PolicyAction, type: ResourceType, channel: string, refusal: BrokerError): BrokerError {
    this.observers.denied(action, type, channel, this.caller)
    return refusal
  }

  #reserved(name: string): void {
    if (typeof name !== 'string') {
      throw new BrokerError('CHANNEL_INVALID', 'invalid channel name: it is not a string', { reason: 'not a string' })
    }
    if (!this.internal && isReservedChannel(name)) {
      throw new BrokerError(
        'CHANNEL_RESERVED',
        `reserved channel name: channels beginning with ${RESERVED_PREFIX} belong to the broker; choose another name`,
        {
          channel: name.slice(0, 64),
        },
      )
    }
  }

  /**
   * Completes what a producer handed in, and checks it.
   * @throws BrokerError MESSAGE_INVALID, MESSAGE_TOO_LARGE
   */
  message(input: MessageInput): OutgoingMessage {
    const { body, metadata = '', tags = NO_TAGS } = input
    if (!(body instanceof Uint8Array)) invalid('body', 'bytes (a Uint8Array)')
    if (typeof metadata !== 'string') invalid('metadata', 'a string')
    let bytes = body.byteLength + Buffer.byteLength(metadata)
    for (const key of Object.keys(tags)) {
      const value = tags[key]
      if (typeof value !== 'string') invalid(`tags.${key}`, 'a string')
      bytes += Buffer.byteLength(key) + Buffer.byteLength(value)
    }
    const limit = this.engine.limits.maxMessageBytes
    if (bytes > limit) {
      throw new BrokerError(
        'MESSAGE_TOO_LARGE',
        `the message has ${bytes} bytes (body, metadata and tags together); the limit is ${limit}`,
        { bytes, limit },
      )
    }
    return { id: randomUUID(), clientId: this.caller.clientId, body, metadata, tags }
  }

  /** Runs a call and tells the observers when it fails with a Broker error. */
  run<T>(action: Action, type: ChannelType | undefined, channel: string, call: () => Promise<T>): Promise<T> {
    // Not awaited in here: the frame would keep the call, and with it a message's body, for as long as the call takes.
    return call().catch((error: unknown) => {
      if (isBrokerError(error)) this.observers.failed(action, type, channel, this.caller, error.code)
      throw error
    })
  }
}

function forbidden({ clientId }: Caller, action: PolicyAction, type: ResourceType, channel: string): BrokerError {
  return new BrokerError(
    'FORBIDDEN',
    `the policy does not let ${JSON.stringify(clientId)} ${action} on ${type} ${JSON.stringify(channel)}`,
    { action, pattern: type, channel },
  )
}

function invalid(field: string, allowed: string): never {
  throw new BrokerError('MESSAGE_INVALID', `invalid message: ${field} must be ${allowed}`, { field, allowed })
}

/** @throws BrokerError ARGUMENT_INVALID unless `value` is a whole number within the range. */
export function assertInteger(argument: string, value: number, min: number, max = Number.MAX_SAFE_INTEGER): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return
  const allowed =
    max === Number.MAX_SAFE_INTEGER ? `a whole number of at least ${min}` : `a whole number from ${min} to ${max}`
  throw new BrokerError('ARGUMENT_INVALID', `invalid argument ${argument}: ${String(value)}; allowed is ${allowed}`, {
    argument,
    allowed,
  })
}
