import type { IncomingMessage } from 'node:http'

import type { BrokerHandle } from '@signalbox/broker-core'
import { compileQuery } from '@signalbox/http-kit'
import type { Identity, Settlements } from '@signalbox/http-kit'
import type { Static, TObject } from 'typebox'
import { Type } from 'typebox'

import type { AnswerRelay } from '../answer-relay.ts'
import { invalidParameters } from '../errors.ts'
import type { IncomingEvent } from '../event/incoming-event.ts'
import type { CeAnswer, CeExchange } from '../ce-exchange.ts'
import type { ResolvedCeOptions } from '../options.ts'
import type { PendingRequests } from '../pending-requests.ts'
import type { Flusher } from '../sse/flusher.ts'
import type { Subscriptions } from '../sse/subscriptions.ts'
import { IGNORED_PARAMETERS, STRICT } from './parameter-types.ts'

/** What all requests to one connector share. */
export interface CeEnvironment {
  readonly options: ResolvedCeOptions
  readonly settlements: Settlements
  readonly pending: PendingRequests
  /** To and from the other nodes; undefined when answers count at this one only. */
  readonly relay: AnswerRelay | undefined
  readonly subscriptions: Subscriptions
  readonly flusher: Flusher
  /** For the log: something failed that no client is told about. */
  failed(error: unknown, request?: IncomingMessage): void
  dropped(count: number): void
}

/** What a route is given of a request. */
export interface CeRouteCall {
  /** The broker, bound to the verified caller. */
  readonly broker: BrokerHandle
  readonly identity: Identity
  /** What limits count the caller by. */
  readonly account: string
  /** Empty where the route takes none. */
  readonly events: readonly IncomingEvent[]
  readonly exchange: CeExchange
  /** Aborted with a CallEnded when nobody waits for the result any more. */
  readonly signal: AbortSignal
  readonly environment: CeEnvironment
}

interface RouteSource<Query extends TObject> {
  /** Below the connector's path. */
  readonly name: string
  readonly method: 'GET' | 'POST'
  /** For the documentation: what it does. */
  readonly summary: string
  /** What the body is: ignored, an event, or events in any mode, batches included. */
  readonly body: 'ignored' | 'event' | 'events'
  /** Whether the call ends at once when the server shuts down. @default false */
  readonly endsAtShutdown?: boolean
  readonly query: Query
  /** Resolves with undefined when the answer was begun already. */
  run(query: Static<Query>, call: CeRouteCall): Promise<CeAnswer | undefined>
}

/** A route as the handler runs it. */
export interface CeRoute extends Omit<RouteSource<TObject>, 'run'> {
  readonly endsAtShutdown: boolean
  /** Checks the query, and returns what is left to do. @throws CeError PARAMETER_INVALID */
  prepare(query: string): (call: CeRouteCall) => Promise<CeAnswer | undefined>
}

/** Makes a route of its parts: one schema is the type, the check and the documentation of its query. */
export function defineCeRoute<Query extends TObject>(source: RouteSource<Query>): CeRoute {
  const read = compileQuery(source.query, invalidParameters, Object.keys(IGNORED_PARAMETERS))
  return {
    name: source.name,
    method: source.method,
    summary: source.summary,
    body: source.body,
    endsAtShutdown: source.endsAtShutdown ?? false,
    query: Type.Object({ ...source.query.properties, ...ignoredBeside(source.query) }, STRICT),
    prepare(text) {
      const query = read(text)
      return (call) => source.run(query, call)
    },
  }
}

/** What a route takes and ignores: all that it has no use of its own for. */
function ignoredBeside({ properties }: TObject): Partial<typeof IGNORED_PARAMETERS> {
  return Object.fromEntries(Object.entries(IGNORED_PARAMETERS).filter(([name]) => !Object.hasOwn(properties, name)))
}
