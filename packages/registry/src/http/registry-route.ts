import type { BrokerHandle } from '@signalbox/broker-core'
import type { HttpRequest, Identity } from '@signalbox/http-kit'
import { hasRole } from '@signalbox/http-kit'
import { addressOf } from '@signalbox/http-kit/internal'

import type { AgentRegistry } from '../agent-registry.ts'
import type { RegistryCaller } from '../options.ts'
import type { AgentInbox } from './agent-inbox.ts'
import type { BodyContent } from './json-body.ts'

/** The input of a route. */
export interface RegistryRouteCall {
  readonly registry: AgentRegistry
  readonly request: HttpRequest
  /** The parsed body; undefined for a route without one. */
  readonly body: unknown
  readonly identity: Identity
  /** The account that the caller's agents count against. */
  readonly account: string
  /** The caller's permissions for agents; undefined: all. */
  readonly rights: Pick<BrokerHandle, 'permits' | 'authorize' | 'requireCredentials'> | undefined
  /** The agent_id in the path, decoded; otherwise empty. */
  readonly agentId: string
  /** The query string without its question mark. */
  readonly query: string
  /** The inboxes of agents; undefined: the server has none. */
  readonly inbox: AgentInbox | undefined
  /** Returns the signal that is aborted with a CallEnded when the result is not needed any more. */
  readonly signal: () => AbortSignal
}

export interface RegistryRoute {
  readonly name: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** The content of the body. @default the body is ignored */
  readonly body?: BodyContent
  /** `true` if the call may wait, so that it ends when the server shuts down. @default false */
  readonly waits?: boolean
  /** Returns the value that is answered as JSON with status 200; a JsonAnswer is JSON already. */
  readonly run: (call: RegistryRouteCall) => Promise<unknown>
}

export function callerOf(request: HttpRequest, identity: Identity): RegistryCaller {
  return { clientId: identity.clientId, admin: hasRole(identity, 'Admin'), address: addressOf(request) }
}
