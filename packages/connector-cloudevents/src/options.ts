import type { IncomingMessage } from 'node:http'

import type { BrokerHandle } from '@signalbox/broker-core'
import type { ConnectorOptions } from '@signalbox/http-kit'
import { anonymousAuthenticator, DEFAULT_MAX_BODY_BYTES, SSE_KEEPALIVE_MS } from '@signalbox/http-kit'

/** The outcome of one HTTP request. */
export type CeOutcome =
  | 'success'
  /** The call was made and came to nothing: a subscriber's rejection, a receipt that was too late. */
  | 'rejected'
  | 'error'
  | 'unauthenticated'
  | 'origin_refused'
  /** A limit of the front door. */
  | 'limited'
  | 'disconnected'

export interface CeRequestEvent {
  /** The route below the connector's path, such as `send/event`; `unknown` where there is none. */
  readonly route: string
  readonly outcome: CeOutcome
  /** From the arrival of the headers until the answer was written; for a subscription until its stream was open. */
  readonly seconds: number
}

/** Callbacks on the message path. They must be quick; their errors are dropped. */
export interface CeHooks {
  requestFinished?(event: CeRequestEvent): void
  /** A subscriber of events was too slow and lost so many; called when its loss is known in full. */
  eventsDropped?(count: number): void
  /** Receives a failure that no client sees, such as a bug or a store that refused a settlement, for the log. */
  failed?(error: unknown, request?: IncomingMessage): void
}

export interface CeConnectorOptions extends ConnectorOptions {
  /** Where the routes begin. @default '/ce' */
  readonly path?: string
  /** Seconds that a command or query without `timeout` waits for its answer; above 0, at most 3600. @default 60 */
  readonly timeoutSeconds?: number
  /** The most subscriptions open at a time; 0 is no limit. @default 0 */
  readonly maxStreams?: number
  /** A subscription ends after so many seconds without a message, and without a command or query that waits for its answer; 0 is never. @default 300 */
  readonly maxSseIdleSeconds?: number
  /** Milliseconds after the end of a subscriber's stream in which its answers to commands and queries are still taken; 0 takes none. @default 30000 */
  readonly answerGraceMs?: number
  /** Milliseconds between the answer to a destructive receive and the settlement of the messages in it; 0 settles at once (M14). @default 250 */
  readonly settleGraceMs?: number
  /** Milliseconds between comments on a subscription; 0 sends none. @default 30000 */
  readonly keepAliveMs?: number
  /** Bytes that may wait for a slow subscriber, or one event where that is larger; at least 1. @default 1048576 */
  readonly maxBufferedBytes?: number
  /** Milliseconds that a slow subscriber has to take what waits for it; then its subscription ends. 0 is no limit. @default 30000 */
  readonly slowConsumerMs?: number
  /**
   * The broker's own handle, from `createBroker`: with it a subscriber's answer to a command or query counts at every node
   * of the broker, else only at the node that has the subscriber's stream. @default none
   */
  readonly system?: BrokerHandle
  /** Where metrics and logs hear of requests and failures. @default none */
  readonly hooks?: CeHooks
}

/** Options of the Fastify plugin alone, and those that have no default. */
type Unresolved = 'drainMs' | 'runHostHooks' | 'bindHost' | 'frontDoor' | 'system'

export type ResolvedCeOptions = Required<Omit<CeConnectorOptions, Unresolved>> &
  Pick<CeConnectorOptions, 'bindHost' | 'frontDoor' | 'system'>

/** @throws RangeError for a number that is out of range, and a path that does not begin with a slash or ends with one */
export function resolveCeOptions(options: CeConnectorOptions): ResolvedCeOptions {
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

/** The longest time that a command or query may ask for. */
export const MAX_TIMEOUT_SECONDS = 3600

function between(option: string, value: number, min: number, max: number): void {
  if (value >= min && value <= max) return
  throw new RangeError(`${option}: ${value}; allowed is a number from ${min} to ${max}`)
}
