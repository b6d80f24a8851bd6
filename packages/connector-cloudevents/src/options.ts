import type { BrokerHandle } from '@signalbox/broker-core'
import type { ConnectorOptions, HttpRequest } from '@signalbox/http-kit'
import type { OptionRules, Resolved } from '@signalbox/http-kit/internal'
import { SSE_KEEPALIVE_MS } from '@signalbox/http-kit'
import { CONNECTOR_OPTIONS, MAX_TIMER_MS, resolveOptions } from '@signalbox/http-kit/internal'

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
  /** The most subscriptions open at a time; 0 means no limit. @default 0 */
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
   * Time that a slow subscriber has to read the buffered bytes, in ms; then its subscription ends. 0 means no limit.
   * @default 30000
   */
  readonly slowConsumerMs?: number
  /**
   * The handle for the broker's own channels, from `createBroker`. With it, every node of the broker accepts a
   * subscriber's answer to a command or query; without it, only the node with the subscriber's stream does. Commands
   * and queries with the header `Idempotency-Key` need it.
   * @default none
   */
  readonly system?: BrokerHandle
  /**
   * Time for which the key and the answer of a command or query with the header `Idempotency-Key` are kept, in
   * seconds; at least 1.
   * @default 86400
   */
  readonly idempotencySeconds?: number
  /** Webhook subscriptions at `/ce/subscriptions`. @default none: the path is unknown */
  readonly push?: PushSubscriptions | undefined
  /** Callbacks for metrics and logs. @default none */
  readonly hooks?: CeHooks
}

/** The longest timeout of a command or query, in seconds. */
export const MAX_TIMEOUT_SECONDS = 3600

const HOOKS: CeHooks = {}

const OPTIONS = {
  ...CONNECTOR_OPTIONS,
  path: { type: 'text', default: '/ce' },
  timeoutSeconds: { type: 'number', default: 60, min: 0.001, max: MAX_TIMEOUT_SECONDS },
  maxStreams: { type: 'number', default: 0, min: 0 },
  maxSseIdleSeconds: { type: 'number', default: 300, min: 0, max: MAX_TIMER_MS / 1000 },
  answerGraceMs: { type: 'number', default: 30_000, min: 0 },
  settleGraceMs: { type: 'number', default: 250, min: 0 },
  keepAliveMs: { type: 'number', default: SSE_KEEPALIVE_MS, min: 0 },
  maxBufferedBytes: { type: 'number', default: 1_048_576, min: 1, max: Number.MAX_SAFE_INTEGER },
  slowConsumerMs: { type: 'number', default: 30_000, min: 0 },
  system: { type: 'object' },
  idempotencySeconds: { type: 'number', default: 86_400, min: 1 },
  push: { type: 'object' },
  hooks: { type: 'object', default: HOOKS },
} as const satisfies OptionRules<CeConnectorOptions>

export type ResolvedCeOptions = Resolved<CeConnectorOptions, typeof OPTIONS>

/**
 * @throws RangeError for a number out of range, or a path without a leading slash or with a trailing one; TypeError for
 * an unknown option or another type
 */
export function resolveCeOptions(options: CeConnectorOptions): ResolvedCeOptions {
  const resolved = resolveOptions('ceConnector', options, OPTIONS)
  if (/^(?:\/[^/?#]+)+$/.test(resolved.path)) return resolved
  throw new RangeError(`path: ${JSON.stringify(resolved.path)}; allowed is a path such as "/ce"`)
}
