import type { Broker } from '@signalbox/broker-core'
import type { ConnectorOptions } from '@signalbox/http-kit'
import type { OptionTypes } from '@signalbox/broker-core/internal'
import { checkOptions } from '@signalbox/broker-core/internal'
import { anonymousAuthenticator, CONNECTOR_OPTION_TYPES, DEFAULT_MAX_BODY_BYTES } from '@signalbox/http-kit'
import type { HttpRequest } from '@signalbox/http-kit'

/** The outcome of one HTTP request. */
export type RegistryOutcome = 'success' | 'error' | 'limited' | 'unauthenticated' | 'origin_refused' | 'disconnected'

export interface RegistryRequestEvent {
  /** `register`, `list`, `get`, `deregister`, `delete` or `heartbeat`; `unknown` if no route matches. */
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
  /** Receives the outcomes of requests, and failures, for metrics and the log. @default none */
  readonly hooks?: RegistryRouteHooks
}

export type ResolvedRouteOptions = Required<
  Omit<RegistryRouteOptions, 'bindHost' | 'broker' | 'drainMs' | 'frontDoor' | 'runHostHooks'>
> &
  Pick<RegistryRouteOptions, 'bindHost' | 'broker' | 'frontDoor'>

const OPTION_TYPES: OptionTypes<RegistryRouteOptions> = { ...CONNECTOR_OPTION_TYPES, broker: 'object', hooks: 'object' }

/**
 * Fills in the defaults.
 * @throws RangeError for a number that is out of range, TypeError for an unknown option or another type
 */
export function resolveRouteOptions(options: RegistryRouteOptions): ResolvedRouteOptions {
  checkOptions('registryRoutes', options, OPTION_TYPES)
  const { maxBodyBytes = DEFAULT_MAX_BODY_BYTES } = options
  if (!(maxBodyBytes >= 1)) throw new RangeError(`maxBodyBytes is ${maxBodyBytes}; it must be a number of at least 1`)
  return {
    ...options,
    authenticator: options.authenticator ?? anonymousAuthenticator,
    trustedOrigins: options.trustedOrigins ?? 'auto',
    maxBodyBytes,
    hooks: options.hooks ?? {},
  }
}
