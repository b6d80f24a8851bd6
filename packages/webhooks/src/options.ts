import type { Caller } from '@signalbox/broker-core'
import type { OptionTypes } from '@signalbox/broker-core/internal'
import { checkOptions } from '@signalbox/broker-core/internal'
import type { WebhookSource, WebhookSubscription } from '@signalbox/broker-core/ports'

import type { AttemptOutcome } from './delivery/attempt.ts'
import type { WebhookFormat } from '@signalbox/broker-core/ports'
import type { EndpointPolicy } from './safety/endpoint-policy.ts'

/** Callbacks for metrics and logs. They must be quick; their errors are dropped. */
export interface WebhookHooks {
  /** Reports an attempt to deliver for a subscription, and its time, in seconds. */
  attempted?(
    outcome: AttemptOutcome,
    seconds: number,
    subscription: Pick<WebhookSubscription, 'id' | 'type' | 'channel'>,
  ): void
  /** Reports a message that moved to a dead-letter queue. */
  deadLettered?(): void
  /** Reports a plain event that was dropped because too many waited for an endpoint. */
  dropped?(): void
  /** Reports that a subscription was disabled. */
  disabled?(subscription: { readonly id: string; readonly owner: string; readonly reason: string }): void
  /** Receives a failure that no caller sees, for the log. */
  failed?(error: unknown): void
}

export interface WebhookOptions {
  /** The key that seals the secrets, 32 bytes; the same on all nodes. See `openKeyFile`. */
  readonly key: Uint8Array
  /** The formats of deliveries. More can be registered later. @default none */
  readonly formats?: readonly WebhookFormat[]
  /** The addresses that may be called. @default public addresses by https */
  readonly endpointPolicy?: EndpointPolicy
  /** The DNS name by which the server introduces itself to endpoints. @default 'localhost' */
  readonly origin?: string
  /** The time after the first attempt in which a message is tried again, in ms; above 0. @default 86400000 */
  readonly maxAgeMs?: number
  /** The most subscriptions of one owner; 0 means no limit. @default 100 */
  readonly maxPerOwner?: number
  /**
   * The most failed handshakes of one owner in a minute; all owners together may have four times as many with one host. 0
   * is no limit. @default 30
   */
  readonly maxFailedHandshakes?: number
  /** The most attempts in flight at a time to one endpoint. @default 16 */
  readonly maxInFlightOfEndpoint?: number
  /** The most attempts in flight at a time from this node. @default 256 */
  readonly maxInFlight?: number
  /** `true` if several nodes use the same storage. @default false */
  readonly shared?: boolean
  /** The time after which the subscriptions of a node that stopped are taken over, in ms. @default 5000 */
  readonly leaseMs?: number
  /**
   * Returns `true` if the owner may have messages of the channel. Called before each attempt. @default everything is
   * allowed
   */
  readonly permits?: (owner: Pick<Caller, 'clientId'>, type: WebhookSource, channel: string) => boolean
  /** @default none */
  readonly hooks?: WebhookHooks
}

const OPTION_TYPES: OptionTypes<WebhookOptions> = {
  key: 'object',
  formats: 'any',
  endpointPolicy: 'object',
  origin: 'text',
  maxAgeMs: 'number',
  maxPerOwner: 'number',
  maxFailedHandshakes: 'number',
  maxInFlightOfEndpoint: 'number',
  maxInFlight: 'number',
  shared: 'boolean',
  leaseMs: 'number',
  permits: 'function',
  hooks: 'object',
}

/** The shortest lease, in ms: a node renews it five times. */
const MIN_LEASE_MS = 100

/**
 * Checks the options.
 * @throws RangeError for a number out of range; TypeError for an unknown or missing option, or another type
 */
export function checkWebhookOptions(options: WebhookOptions): void {
  checkOptions('openWebhooks', options, OPTION_TYPES, ['key'])
  atLeast('maxAgeMs', options.maxAgeMs, 1)
  atLeast('maxPerOwner', options.maxPerOwner, 0)
  atLeast('maxFailedHandshakes', options.maxFailedHandshakes, 0)
  atLeast('maxInFlightOfEndpoint', options.maxInFlightOfEndpoint, 1)
  atLeast('maxInFlight', options.maxInFlight, 1)
  atLeast('leaseMs', options.leaseMs, MIN_LEASE_MS)
}

function atLeast(option: string, value: number | undefined, min: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= min)) return
  throw new RangeError(`${option}: ${value}; allowed is a whole number of at least ${min}`)
}
