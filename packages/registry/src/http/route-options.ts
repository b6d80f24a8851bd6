import type { IncomingMessage } from 'node:http'

import type { Broker } from '@signalbox/broker-core'
import type { ConnectorOptions } from '@signalbox/http-kit'
import { anonymousAuthenticator, DEFAULT_MAX_BODY_BYTES } from '@signalbox/http-kit'

/** How one HTTP request ended. */
export type RegistryOutcome = 'success' | 'error' | 'limited' | 'unauthenticated' | 'origin_refused' | 'disconnected'

export interface RegistryRequestEvent {
  /** `register`, `list`, `get`, `deregister`, `delete` or `heartbeat`; `unknown` where there is no such route. */
  readonly route: string
  readonly outcome: RegistryOutcome
  /** From the arrival of the headers until the answer was written. */
  readonly seconds: number
}

/** Called on the path of the request: be quick. What they throw is dropped. */
export interface RegistryRouteHooks {
  requestFinished?(event: RegistryRequestEvent): void
  /** Something failed that no client is told about. For the log. */
  failed?(error: unknown, request?: IncomingMessage): void
}

export interface RegistryRouteOptions extends ConnectorOptions {
  /** Whose policy decides what callers may do with agents (S4). @default none does */
  readonly broker?: Broker
  /** Where metrics and logs hear of requests and failures. @default none */
  readonly hooks?: RegistryRouteHooks
}

export type ResolvedRouteOptions = Required<
  Omit<RegistryRouteOptions, 'bindHost' | 'broker' | 'drainMs' | 'frontDoor' | 'runHostHooks'>
> &
  Pick<RegistryRouteOptions, 'bindHost' | 'broker' | 'frontDoor'>

/** @throws RangeError for a number that is out of range */
export function resolveRouteOptions(options: RegistryRouteOptions): ResolvedRouteOptions {
  const { maxBodyBytes = DEFAULT_MAX_BODY_BYTES } = options
  if (!(maxBodyBytes >= 1)) throw new RangeError(`maxBodyBytes: ${maxBodyBytes}; allowed is a number of at least 1`)
  return {
    ...options,
    authenticator: options.authenticator ?? anonymousAuthenticator,
    trustedOrigins: options.trustedOrigins ?? 'auto',
    maxBodyBytes,
    hooks: options.hooks ?? {},
  }
}
