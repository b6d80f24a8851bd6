import { randomUUID } from 'node:crypto'
import { Buffer } from 'node:buffer'

import type { Caller } from '../caller.ts'
import type { ChannelType } from '../channel.ts'
import { assertChannelName, assertSubscriptionPattern, isReservedChannel, RESERVED_PREFIX } from '../channel.ts'
import type { Engine } from '../engine.ts'
import { BrokerError, isBrokerError } from '../errors.ts'
import type { MessageInput, OutgoingMessage, Tags } from '../message.ts'
import type { Action, Observers } from '../observer.ts'
import type { Routing } from '../routing/routing.ts'

const NO_TAGS: Tags = Object.freeze({})

/**
 * The gate that every call on a handle passes: one place for the naming rules (C1), the reserved prefix (M8), message
 * validation, the size limit (C4), and telling the observers how the call ended.
 */
export class Access {
  readonly engine: Engine
  readonly observers: Observers
  readonly caller: Caller
  /** True for the broker's own handle, which may use reserved channels. */
  readonly internal: boolean
  /** Where accepted messages are copied to; undefined when nothing is ever routed. */
  readonly routing: Routing | undefined

  constructor(engine: Engine, observers: Observers, caller: Caller, internal: boolean, routing: Routing | undefined) {
    this.engine = engine
    this.observers = observers
    this.caller = caller
    this.internal = internal
    this.routing = routing
  }

  /** @throws BrokerError CHANNEL_INVALID, CHANNEL_RESERVED */
  channel(name: string): void {
    this.#reserved(name)
    assertChannelName(name)
  }

  /** @throws BrokerError CHANNEL_INVALID, CHANNEL_RESERVED */
  pattern(pattern: string): void {
    this.#reserved(pattern)
    assertSubscriptionPattern(pattern)
  }

  /** Whether this caller may know of the channel. */
  sees(channel: string): boolean {
    return this.internal || !isReservedChannel(channel)
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
  async run<T>(action: Action, type: ChannelType | undefined, channel: string, call: () => Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      if (isBrokerError(error)) this.observers.failed(action, type, channel, this.caller, error.code)
      throw error
    }
  }
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
