import type { BrokerHandle } from '@signalbox/broker-core'
import type { ConnectorOptions } from '@signalbox/http-kit'
import type { OptionTypes } from '@signalbox/broker-core/internal'
import { checkOptions } from '@signalbox/broker-core/internal'
import {
  anonymousAuthenticator,
  CONNECTOR_OPTION_TYPES,
  DEFAULT_MAX_BODY_BYTES,
  SSE_KEEPALIVE_MS,
} from '@signalbox/http-kit'
import type { HttpRequest } from '@signalbox/http-kit'

import type { PushSubscriptions } from './push/push-subscriptions.ts'

/** The outcome of one HTTP request. */
export type CeOutcome =
  | 'success'
  /** A rejected call, for example by a subscriber, or a receipt whose lease has ended. */
  | 'rejected'
  | 'error'
  | 'unauthenticated'
  | 'origin_refused'
  /** A limit of the front door. */
  | 'limited'
  | 'disconnected'

export interface CeRequestEvent {
  /** The route below the connector's path, such as `send/event`; `unknown` for other paths. */
  readonly route: string
  readonly outcome: CeOutcome
  /**
   * Time from the arrival of the headers to the end of the answer, in seconds; for a subscription, to the start of
   * its stream.
   */
  readonly seconds: number
}

/** Callbacks on the message path. They must be quick; their errors are dropped. */
export interface CeHooks {
  requestFinished?(event: CeRequestEvent): void
  /** Receives the number of events that a slow subscriber lost, after it has caught up or disconnected. */
  eventsDropped?(count: number): void
  /**
   * Receives a failure that no client sees, such as a bug or a store that refused a settlement, for the log.
   * @default one line on stderr
   */
  failed?(error: unknown, request?: HttpRequest): void
}

export interface CeConnectorOptions extends ConnectorOptions {
  /** The path below which the routes are. @default '/ce' */
  readonly path?: string
  /**
   * Time that a command or query without `timeout` waits for its answer, in seconds; above 0, at most 3600.
   * @default 60
   */
  readonly timeoutSeconds?: number
  /** The most subscriptions open at a time; 0 is no limit. @default 0 */
  readonly maxStreams?: number
  /**
   * Time after which a subscription ends without a message and without a pending command or query, in seconds; 0
   * means never.
   * @default 300
   */
  readonly maxSseIdleSeconds?: number
  /**
   * Time after the end of a subscriber's stream in which its answers to commands and queries are accepted, in ms; 0
   * accepts none.
   * @default 30000
   */
  readonly answerGraceMs?: number
  /**
   * Time between the answer to a destructive receive and the settlement of its messages, in ms; 0 settles as soon as
   * the answer is written.
   * @default 250
   */
  readonly settleGraceMs?: number
  /** Interval between comments on a subscription, in ms; 0 sends none. @default 30000 */
  readonly keepAliveMs?: number
  /** Bytes that may be buffered for a slow subscriber, at least 1. One event may be larger. @default 1048576 */
  readonly maxBufferedBytes?: number
  /**
   * Time that a slow subscriber has to read the buffered bytes, in ms; then its subscription ends. 0 is no limit.
   * @default 30000
   */
  readonly slowConsumerMs?: number
  /**
   * The handle for the broker's own channels, from `createBroker`. With it, every node of the broker accepts a
   * subscriber's answer to a command or query; without it, only the node with the subscriber's stream does.
   * @default none
   */
  readonly system?: BrokerHandle
  /** Webhook subscriptions at `/ce/subscriptions`. @default none: the path is unknown */
  readonly push?: PushSubscriptions
  /** Callbacks for metrics and logs. @default none */
  readonly hooks?: CeHooks
}

/** Options of the Fastify plugin, and options without a default. */
type Unresolved = 'drainMs' | 'runHostHooks' | 'bindHost' | 'frontDoor' | 'system' | 'push'

export type ResolvedCeOptions = Required<Omit<CeConnectorOptions, Unresolved>> &
  Pick<CeConnectorOptions, 'bindHost' | 'frontDoor' | 'system' | 'push'>

const OPTION_TYPES: OptionTypes<CeConnectorOptions> = {
  ...CONNECTOR_OPTION_TYPES,
  path: 'text',
  timeoutSeconds: 'number',
  maxStreams: 'number',
  maxSseIdleSeconds: 'number',
  answerGraceMs: 'number',
  settleGraceMs: 'number',
  keepAliveMs: 'number',
  maxBufferedBytes: 'number',
  slowConsumerMs: 'number',
  system: 'object',
  push: 'object',
  hooks: 'object',
}

/**
 * @throws RangeError for a number out of range, or a path without a leading slash or with a trailing one; TypeError for
 * an unknown option or another type
 */
export function resolveCeOptions(options: CeConnectorOptions): ResolvedCeOptions {
  checkOptions('ceConnector', options, OPTION_TYPES)
  const resolved: ResolvedCeOptions = {
    ...options,
    path: options.path ?? '/ce',
    authenticator: options.authenticator ?? anonymousAuthenticator,
    trustedOrigins: options.trustedOrigins ?? 'auto',
    maxBodyBytes: options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES,
    timeoutSeconds: options.timeoutSeconds ?? 60,
    maxStreams: options.maxStreams ?? 0,
    maxSseIdleSeconds: options.maxSseIdleSeconds ?? 300,
    answerGraceMs: options.answerGraceMs ?? 30_000,
    settleGraceMs: options.settleGraceMs ?? 250,
    keepAliveMs: options.keepAliveMs ?? SSE_KEEPALIVE_MS,
    maxBufferedBytes: options.maxBufferedBytes ?? 1_048_576,
    slowConsumerMs: options.slowConsumerMs ?? 30_000,
    hooks: options.hooks ?? {},
  }
  if (!/^(?:\/[^/?#]+)+$/.test(resolved.path)) {
    throw new RangeError(`path: ${JSON.stringify(resolved.path)}; allowed is a path such as "/ce"`)
  }
  between('maxBodyBytes', resolved.maxBodyBytes, 1, MAX_TIMER_MS)
  between('timeoutSeconds', resolved.timeoutSeconds, 0.001, MAX_TIMEOUT_SECONDS)
  between('maxStreams', resolved.maxStreams, 0, MAX_TIMER_MS)
  between('maxSseIdleSeconds', resolved.maxSseIdleSeconds, 0, MAX_TIMER_MS / 1000)
  between('answerGraceMs', resolved.answerGraceMs, 0, MAX_TIMER_MS)
  between('settleGraceMs', resolved.settleGraceMs, 0, MAX_TIMER_MS)
  between('keepAliveMs', resolved.keepAliveMs, 0, MAX_TIMER_MS)
  between('slowConsumerMs', resolved.slowConsumerMs, 0, MAX_TIMER_MS)
  between('maxBufferedBytes', resolved.maxBufferedBytes, 1, Number.MAX_SAFE_INTEGER)
  return resolved
}

const MAX_TIMER_MS = 2_147_483_647

/** The longest timeout of a command or query, in seconds. */
export const MAX_TIMEOUT_SECONDS = 3600

function between(option: string, value: number, min: number, max: number): void {
  if (value >= min && value <= max) return
  throw new RangeError(`${option}: ${value}; allowed is a number from ${min} to ${max}`)
}
