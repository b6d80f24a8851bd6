import type { Broker } from '@signalbox/broker-core'
import type { ConnectorOptions, HttpRequest } from '@signalbox/http-kit'
import type { OptionRules, Resolved } from '@signalbox/http-kit/internal'
import { CONNECTOR_OPTIONS, resolveOptions } from '@signalbox/http-kit/internal'

import type { AgentInbox } from './agent-inbox.ts'

/** The outcome of one HTTP request. */
export type RegistryOutcome = 'success' | 'error' | 'limited' | 'unauthenticated' | 'origin_refused' | 'disconnected'

export interface RegistryRequestEvent {
  /**
   * `register`, `list`, `get`, `deregister`, `delete`, `heartbeat`, `inbox_lease`, `inbox_events`, `inbox_nack` or
   * `inbox_status`; `unknown` if no route matches.
   */
  readonly route: string
  readonly outcome: RegistryOutcome
  /** The time from the arrival of the headers until the answer was written, in seconds. */
  readonly seconds: number
}

/** Called synchronously while a request is handled, so they must be quick. Their errors are dropped. */
export interface RegistryRouteHooks {
  requestFinished?(event: RegistryRequestEvent): void
  /** Called with a failure that no client sees, for the log. @default one line on stderr */
  failed?(error: unknown, request?: HttpRequest): void
}

export interface RegistryRouteOptions extends ConnectorOptions {
  /** The Broker whose policy decides the callers' permissions for agents. @default no policy applies */
  readonly broker?: Broker
  /** The inboxes of agents, for the routes below `/agents/{agent_id}/inbox`. @default those paths are 404 */
  readonly inbox?: AgentInbox
  /** Receives the outcomes of requests, and failures, for metrics and the log. @default none */
  readonly hooks?: RegistryRouteHooks
}

const HOOKS: RegistryRouteHooks = {}

const OPTIONS = {
  ...CONNECTOR_OPTIONS,
  broker: { type: 'object' },
  inbox: { type: 'object' },
  hooks: { type: 'object', default: HOOKS },
} as const satisfies OptionRules<RegistryRouteOptions>

export type ResolvedRouteOptions = Resolved<RegistryRouteOptions, typeof OPTIONS>

/**
 * Fills in the defaults.
 * @throws RangeError for a number that is out of range, TypeError for an unknown option or another type
 */
export function resolveRouteOptions(options: RegistryRouteOptions): ResolvedRouteOptions {
  return resolveOptions('registryRoutes', options, OPTIONS)
}
