import type { BrokerHandle, PolicyAction, ResourceType } from '@signalbox/broker-core'
import type { IdempotencyKeys } from '@signalbox/broker-core/internal'
import { defineOperation, queryForm } from '@signalbox/http-kit/internal'
import type { HttpRequest, Identity, Settlements } from '@signalbox/http-kit'
import type { AnswerRelay, OperationSource, PendingRequests } from '@signalbox/http-kit/internal'
import { Type } from 'typebox'
import type { Static, TObject } from 'typebox'

import type { CeAnswer, CeExchange } from '../ce-exchange.ts'
import { invalidParameters } from '../errors.ts'
import type { IncomingEvent } from '../event/attributes.ts'
import type { ResolvedCeOptions } from '../options.ts'
import type { Flusher } from '../sse/feed.ts'
import type { Subscriptions } from '../sse/subscriptions.ts'
import type { DocumentedAnswer } from './answers.ts'

/** The parts that all requests to one connector share. */
export interface CeEnvironment {
  readonly options: ResolvedCeOptions
  readonly settlements: Settlements
  readonly pending: PendingRequests
  /** Forwards answers between nodes; `undefined` if answers are accepted at this node only. */
  readonly relay: AnswerRelay | undefined
  /** The keys of commands and queries that run once; `undefined` if none are kept. */
  readonly keys: IdempotencyKeys | undefined
  readonly subscriptions: Subscriptions
  readonly flusher: Flusher
  /** Reports a failure that no client sees, for the log. */
  failed(error: unknown, request?: HttpRequest): void
  dropped(count: number): void
}

/** A request, as its route sees it. */
export interface CeRouteCall {
  /** The broker handle of the verified caller. */
  readonly broker: BrokerHandle
  readonly identity: Identity
  /** The key that limits count the caller by. */
  readonly account: string
  /** The events of the body; empty for a route without events. */
  readonly events: readonly IncomingEvent[]
  readonly exchange: CeExchange
  /** Aborted with a CallEnded when the result is not needed any more. */
  readonly signal: AbortSignal
  readonly environment: CeEnvironment
}

/** A route below the connector's path. Its output is the answer, and `undefined` for a stream. */
interface RouteSource<Query extends TObject> extends OperationSource<Query, DocumentedAnswer | undefined> {
  readonly method: 'GET' | 'POST'
  /** The content of the body: ignored, one event, or events in any mode, batches included. */
  readonly body: 'ignored' | 'event' | 'events'
  /** The schemas of the headers that the route reads, by their names, for the documentation. @default none */
  readonly headers?: TObject | undefined
  /** The permission that a caller needs on some channel for the route to be useful. @default none */
  readonly needs?:
    | { readonly action: PolicyAction; readonly types: readonly [ResourceType, ...ResourceType[]] }
    | undefined
  /** `true` if the call ends at once when the server shuts down. @default false */
  readonly endsAtShutdown?: boolean
  /** Runs the route. Resolves with `undefined` if the answer was started already. */
  run(query: Static<Query>, call: CeRouteCall): Promise<CeAnswer | undefined>
}

/** A route as the surface runs it. */
export interface CeRoute extends Omit<RouteSource<TObject>, 'rule' | 'run'> {
  readonly endsAtShutdown: boolean
  /** Checks the query, and returns the call without its context. @throws CeError PARAMETER_INVALID */
  prepare(query: string): PreparedCall
}

/** Runs a route. Resolves with `undefined` if the answer was started already. */
export type PreparedCall = (call: CeRouteCall) => Promise<CeAnswer | undefined>

/** Makes a route from its declaration. */
export function defineCeRoute<Query extends TObject>(source: RouteSource<Query>): CeRoute {
  const { body, endsAtShutdown = false, headers, input, method, needs } = source
  const operation = defineOperation(QUERY, source)
  return {
    ...operation,
    method,
    body,
    headers,
    needs,
    endsAtShutdown,
    input: Type.Object({ ...input.properties, ...ignoredParametersOf(input) }, STRICT),
    prepare(query) {
      const parameters = operation.read(query)
      return (call) => source.run(parameters, call)
    },
  }
}

/** Returns the accepted and ignored parameters that the route does not define itself. */
function ignoredParametersOf({ properties }: TObject): Partial<typeof IGNORED_PARAMETERS> {
  return Object.fromEntries(Object.entries(IGNORED_PARAMETERS).filter(([name]) => !Object.hasOwn(properties, name)))
}

/** The query parameters that several routes share. The Broker checks channel names. */

export function channel(description: string) {
  return Type.String({ description })
}

export function eventChannel() {
  return Type.Optional(channel('The channel of events without a `subject`.'))
}

/** The longest delay or expiry, in seconds. Added to the current time, it still makes a valid date. */
const MAX_SECONDS = 1_000_000_000_000

export function seconds(description: string) {
  return Type.Optional(Type.Integer({ description, minimum: 0, maximum: MAX_SECONDS, default: 0 }))
}

export function receipts(description: string) {
  return Type.Array(Type.String({ minLength: 1 }), { description, minItems: 1, maxItems: 1000 })
}

/**
 * Parameters that clients of other brokers send with every request. All routes accept them, so that such clients work
 * unchanged.
 */
export const IGNORED_PARAMETERS = {
  client_id: Type.Optional(
    Type.String({
      description: 'Accepted for clients of other brokers, and ignored: the credentials determine the caller.',
    }),
  ),
  wait_timeout: Type.Optional(Type.String({ description: 'Accepted for clients of other brokers, and ignored.' })),
}

const QUERY = queryForm(invalidParameters, IGNORED_PARAMETERS)

export const STRICT = { additionalProperties: false } as const
