import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'

import type { Authorization } from '../authorization/authorization.ts'
import { GuardedSubscription } from '../authorization/guarded-subscription.ts'
import type { PolicyAction, ResourceType } from '../authorization/policy.ts'
import type { Caller, CallerUsage } from '../caller.ts'
import { accountOf } from '../caller.ts'
import type { ChannelType } from '../channel.ts'
import { assertChannelName, assertSubscriptionPattern, isReservedChannel, RESERVED_PREFIX } from '../channel.ts'
import type { Engine } from '../engine/engine.ts'
import type { SubscribeOptions } from '../engine/event-engine.ts'
import type { Subscription } from '../engine/subscription.ts'
import { BrokerError, isBrokerError } from '../errors.ts'
import type { MessageInput, OutgoingMessage, Tags } from '../message.ts'
import { encodeText, MAX_TAGS } from '../message.ts'
import type { Action, Attachment, Observers } from '../observer.ts'
import { assertObject } from '../options.ts'
import type { Routing } from '../routing/routing.ts'
import type { ConsumerGate } from '../settings/consumer-gate.ts'
import type { QueuePauses } from '../settings/queue-pauses.ts'
import { checkBody } from '../settings/schema/check-body.ts'
import { endWith, MessageSpans } from '../tracing/message-spans.ts'
import type { TracingParts } from '../tracing/message-spans.ts'
import { hasCreationContext, traceTags } from '../tracing/trace-context.ts'
import type { Span, SpanParent, Tracing } from '../tracing/tracing.ts'
import type { ChannelCreations } from './channel-creations.ts'

const NO_TAGS: Tags = Object.freeze({})

/** The engine, observers and limits that all handles of a broker share. */
export interface BrokerContext {
  readonly engine: Engine
  readonly observers: Observers
  /** The routing of accepted messages; undefined if nothing is routed. */
  readonly routing: Routing | undefined
  /** The counts and limits of callers; undefined if there are no limits. */
  readonly limits: CallerUsage | undefined
  /** `true` if the limits apply to this broker's callers. Channels that operators create do not count. */
  readonly limited: boolean
  /** The creations of channels; undefined if the engine creates any number at the same time. */
  readonly creations: ChannelCreations | undefined
  /** Lets receivers lease messages as the settings for consumers and pauses allow it. */
  readonly gate: ConsumerGate
  readonly pauses: QueuePauses
  /** `true` if receivers must pass the gate. Operators need not. */
  readonly gated: boolean
  /** Undefined if nothing is traced. */
  readonly tracing: TracingParts | undefined
}

/**
 * The gate that every call on a handle passes. It applies the naming rules, the reserved prefix, the policy,
 * message validation and the size limit, and reports failed calls to the observers.
 */
export class Access {
  readonly engine: Engine
  readonly observers: Observers
  readonly routing: Routing | undefined
  readonly gate: ConsumerGate
  readonly pauses: QueuePauses
  readonly gated: boolean
  readonly caller: Caller
  /** `true` for the broker's own handle, which may use reserved channels. */
  readonly internal: boolean
  /** The spans of the caller's messages; undefined if nothing is traced. */
  readonly spans: MessageSpans | undefined
  readonly #context: BrokerContext
  /** The policy that applies to the caller; undefined if there is none. */
  readonly #authorization: Authorization | undefined
  readonly #limits: CallerUsage | undefined
  /** `false` if the limits do not apply to the caller. */
  readonly #limited: boolean

  /** @param parent The span in which the calls are made. @default they are not recorded */
  constructor(
    context: BrokerContext,
    caller: Caller,
    internal: boolean,
    authorization: Authorization | undefined,
    parent?: SpanParent,
  ) {
    this.#context = context
    this.spans = context.tracing && new MessageSpans(context.tracing, parent)
    this.engine = context.engine
    this.observers = context.observers
    this.routing = context.routing
    this.gate = context.gate
    this.pauses = context.pauses
    this.gated = context.gated
    this.caller = caller
    this.internal = internal
    this.#authorization = authorization
    this.#limits = context.limits
    this.#limited = context.limited && !internal
  }

  get tracing(): Tracing | undefined {
    return this.#context.tracing?.tracing
  }

  /** Returns the same access for calls that are made within a span. */
  within(parent: SpanParent): Access {
    return new Access(this.#context, this.caller, this.internal, this.#authorization, parent)
  }

  /** `true` if a policy applies to the caller. */
  get governed(): boolean {
    return this.#authorization !== undefined
  }

  /** Checks the name and the permission. @throws BrokerError CHANNEL_INVALID, CHANNEL_RESERVED, FORBIDDEN */
  channel(action: PolicyAction, type: ChannelType, name: string): void {
    this.#reserved(name)
    assertChannelName(name)
    this.authorize(action, type, name)
  }

  /** Checks a subscription's pattern, which may match several channels. @throws BrokerError as {@link channel} */
  pattern(action: PolicyAction, type: ChannelType, pattern: string): void {
    this.#reserved(pattern)
    assertSubscriptionPattern(pattern)
    const refusal = this.#refusal(action, type, pattern)
    if (refusal !== undefined) throw this.#denied(action, type, pattern, refusal)
  }

  /**
   * Runs a call that creates the channel if it does not exist; the new channel counts for the caller.
   * @throws BrokerError CALLER_LIMIT
   */
  creating<T>(type: ChannelType, name: string, work: () => Promise<T>): Promise<T> {
    const undo = this.reserve(type, name)
    const { creations } = this.#context
    // Not awaited here: the work may take long, and this frame would keep its references in memory.
    const result = creations === undefined ? work() : this.#ordered(creations, type, name, work)
    if (undo !== undefined) result.catch(undo)
    return result
  }

  /** Creates a stored channel when it is the account's turn. Channels of other types exist only in memory. */
  #ordered<T>(creations: ChannelCreations, type: ChannelType, name: string, work: () => Promise<T>): Promise<T> {
    const isStored = type === 'queues' || type === 'events_store'
    if (!this.#limited || !isStored || this.engine.channels.exists(type, name)) return work()
    return creations.run(`${type} ${name}`, accountOf(this.caller), work)
  }

  /** Counts a channel that may be created later. @throws BrokerError CALLER_LIMIT */
  reserve(type: ChannelType, name: string): (() => void) | undefined {
    return this.#limited ? this.#limits?.reserve(this.caller, type, name) : undefined
  }

  /** Stops counting a channel that was deleted. */
  deleted(type: ChannelType, name: string): void {
    this.#limits?.deleted(type, name)
  }

  /**
   * Counts a request that waits for its answer. Call the returned function when the wait has ended.
   * @throws BrokerError CALLER_LIMIT
   */
  beginWaiting(): (() => void) | undefined {
    return this.#limited ? this.#limits?.beginWaiting(this.caller) : undefined
  }

  /** Opens a subscription that was allowed, and ends it when a new policy no longer allows it. */
  async subscription(
    action: PolicyAction,
    type: ChannelType,
    pattern: string,
    group: string | undefined,
    open: () => Promise<Subscription>,
  ): Promise<Subscription> {
    const subscription = await this.#guarded(action, type, pattern, open)
    const { caller, observers } = this
    const kind = action === 'respond' ? 'responder' : 'subscriber'
    const attachment: Attachment = { kind, type, channel: pattern, group, caller }
    observers.attached(attachment)
    void subscription.closed.then(() => observers.detached(attachment))
    return subscription
  }

  async #guarded(
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

  /** Returns whether the policy and the credentials allow the caller the action. */
  permits(action: PolicyAction, type: ResourceType, channel: string): boolean {
    return this.#inCredentials(action) && this.#inPolicy(action, type, channel)
  }

  /**
   * Returns whether any channel can exist on which the policy and the credentials allow the caller the action. False
   * only if there can be none.
   */
  mayPermit(action: PolicyAction, type: ResourceType): boolean {
    return this.#inCredentials(action) && this.#mayBeInPolicy(action, type)
  }

  /** Checks like {@link permits}, and reports a denial to the observers. @throws BrokerError FORBIDDEN */
  authorize(action: PolicyAction, type: ResourceType, channel: string): void {
    if (this.permits(action, type, channel)) return
    const refused = this.#inPolicy(action, type, channel) ? outsideCredentials : forbidden
    throw this.#denied(action, type, channel, refused(this.caller, action, type, channel))
  }

  /**
   * Checks that the credentials allow an action whose result the policy filters, such as a list. Other credentials
   * cannot help a caller whom the policy allows nothing, so that caller passes.
   * @throws BrokerError FORBIDDEN
   */
  requireCredentials(action: PolicyAction, types: readonly ResourceType[], channel = ''): void {
    if (this.#inCredentials(action)) return
    const type = types.find((each) => this.#mayBeInPolicy(action, each))
    if (type === undefined) return
    throw this.#denied(action, type, channel, outsideCredentials(this.caller, action, type, channel))
  }

  /**
   * Watches something that was allowed and continues. When a new policy no longer allows it, calls back once and
   * reports the denial to the observers. The returned function ends the watch.
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

  /** Returns whether the channel is visible to this caller. */
  sees(type: ChannelType, channel: string): boolean {
    return this.internal || (!isReservedChannel(channel) && this.permits('list', type, channel))
  }

  #refusal(action: PolicyAction, type: ChannelType, pattern: string): BrokerError | undefined {
    if (this.#authorization?.permitsAll(this.caller, action, type, pattern) === false) {
      return forbidden(this.caller, action, type, pattern)
    }
    return this.#inCredentials(action) ? undefined : outsideCredentials(this.caller, action, type, pattern)
  }

  #inPolicy(action: PolicyAction, type: ResourceType, channel: string): boolean {
    return this.#authorization?.permits(this.caller, action, type, channel) ?? true
  }

  #mayBeInPolicy(action: PolicyAction, type: ResourceType): boolean {
    return this.#authorization?.mayPermit(this.caller, action, type) ?? true
  }

  #inCredentials(action: PolicyAction): boolean {
    return this.caller.actions?.has(action) ?? true
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
   * Completes and validates a producer's input.
   * @param span The span of the send, whose context the message gets if it brings none, and if the size limit allows it
   * @param given Replaces the tags of the input
   * @throws BrokerError MESSAGE_INVALID, MESSAGE_TOO_LARGE
   */
  message(input: MessageInput, span: Span | undefined, given?: Tags): OutgoingMessage {
    assertInput(input)
    const { metadata = '', tags: own = NO_TAGS } = input
    const tags = given ?? own
    const body = typeof input.body === 'string' ? encodeText(input.body) : input.body
    if (!(body instanceof Uint8Array)) invalid('body', 'a text or bytes (a Uint8Array)')
    if (typeof metadata !== 'string') invalid('metadata', 'a string')
    let bytes = body.byteLength + Buffer.byteLength(metadata)
    const keys = Object.keys(tags)
    if (keys.length > MAX_TAGS && !this.internal) invalid('tags', `at most ${MAX_TAGS} tags (${keys.length} are given)`)
    for (const key of keys) {
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
    const sent = span === undefined ? tags : withContext(tags, span, limit - bytes)
    return { id: randomUUID(), clientId: this.caller.clientId, body, metadata, tags: sent }
  }

  /** Checks a body against the channel's schema. @throws BrokerError SCHEMA_MISMATCH, SETTING_UNSUPPORTED */
  body(type: ChannelType, channel: string, message: OutgoingMessage): void {
    checkBody(this.engine.settings, type, channel, message)
  }

  /** Runs a call, and reports a Broker error to the observers. Ends the span of the call, if it has one. */
  run<T>(
    action: Action,
    type: ChannelType | undefined,
    channel: string,
    call: () => Promise<T>,
    span?: Span,
  ): Promise<T> {
    // Not awaited: the frame would keep the call, and with it a message's body, in memory until the call ends.
    const result = call().catch((error: unknown) => {
      // The broker's own logs write again after a conflict, so it is no failure.
      const isReported = isBrokerError(error) && !(this.internal && error.code === 'CONFLICT')
      if (isReported) this.observers.failed(action, type, channel, this.caller, error.code)
      throw error
    })
    return span === undefined ? result : endWith(span, result, action === 'send')
  }
}

/** Returns the tags with the context of a send, unless the message brings one, or has too few bytes left. */
function withContext(tags: Tags, { context }: Span, bytesLeft: number): Tags {
  if (hasCreationContext(tags)) return tags
  const added = traceTags(context)
  let bytes = 0
  for (const [name, value] of Object.entries(added)) bytes += name.length + value.length
  return bytes > bytesLeft ? tags : { ...tags, ...added }
}

/** @throws BrokerError ARGUMENT_INVALID */
export function assertInput(input: unknown): void {
  assertObject('input', input, "an object with a body, such as { body: 'text' }")
}

function forbidden({ clientId }: Caller, action: PolicyAction, type: ResourceType, channel: string): BrokerError {
  const message = `the policy does not let ${JSON.stringify(clientId)} ${action} on ${type} ${JSON.stringify(channel)}`
  // Without a stack, which would cost a flood of denied calls CPU time and not show why they are denied.
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return new BrokerError('FORBIDDEN', message, { action, pattern: type, channel })
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

function outsideCredentials(
  { clientId }: Caller,
  action: PolicyAction,
  type: ResourceType,
  channel: string,
): BrokerError {
  return new BrokerError(
    'FORBIDDEN',
    `the credentials of ${JSON.stringify(clientId)} do not allow ${action}; use a token with the scope for it`,
    { action, pattern: type, channel, reason: 'credentials' },
  )
}

function invalid(field: string, allowed: string): never {
  throw new BrokerError('MESSAGE_INVALID', `invalid message: ${field} must be ${allowed}`, { field, allowed })
}

/** Throws unless `value` is a whole number within the range. @throws BrokerError ARGUMENT_INVALID */
export function assertInteger(argument: string, value: number, min: number, max = Number.MAX_SAFE_INTEGER): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return
  const allowed =
    max === Number.MAX_SAFE_INTEGER ? `a whole number of at least ${min}` : `a whole number from ${min} to ${max}`
  throw new BrokerError('ARGUMENT_INVALID', `invalid argument ${argument}: ${String(value)}; allowed is ${allowed}`, {
    argument,
    allowed,
  })
}

/** Returns the error for the option `durable` of a subscription that cannot have it. */
export function durableRefusal(problem: string, allowed: string): BrokerError {
  return new BrokerError('ARGUMENT_INVALID', `invalid argument durable: ${problem}`, { argument: 'durable', allowed })
}

/**
 * Refuses `durable` for messages that are not stored: a group that expects its position to survive would miss messages
 * without notice. The types have no such option, but JavaScript programs may pass it. @throws BrokerError
 * ARGUMENT_INVALID
 */
export function assertNotDurable(options: SubscribeOptions & { readonly durable?: unknown }): void {
  if (options.durable === undefined || options.durable === false) return
  throw durableRefusal('only groups of events stores have a position; use an events store', 'for events stores only')
}
