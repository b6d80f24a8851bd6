import type { IncomingMessage } from 'node:http'

import type { BrokerHandle } from '@signalbox/broker-core'
import type { BodyBudget, Identity } from '@signalbox/http-kit'
import { addressOf, hasRole } from '@signalbox/http-kit'

import type { AgentRegistry } from '../agent-registry.ts'
import { RegistryError } from '../errors.ts'
import type { RegistryCaller } from '../options.ts'
import { agentIdOf, readJsonBody } from './json-body.ts'
import { JsonAnswer } from './json-answer.ts'
import { listPage, nextLink } from './list-page.ts'
import { readListQuery } from './list-query.ts'

/** What a route works with: origin and caller have been checked, the body has not been read. */
export interface RegistryRouteCall {
  readonly registry: AgentRegistry
  readonly request: IncomingMessage
  /** Counts the bytes of the body. */
  readonly hold: BodyBudget | undefined
  readonly maxBodyBytes: number
  readonly identity: Identity
  /** What the caller's agents count against. */
  readonly account: string
  /** What the policy lets the caller do with agents (S4); undefined where there is none. */
  readonly rights: Pick<BrokerHandle, 'permits' | 'authorize'> | undefined
  /** Of the path `/agents/{agent_id}`; otherwise empty. */
  readonly agentId: string
  /** Without its question mark. */
  readonly query: string
}

export interface RegistryRoute {
  readonly name: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Status 200 with this as JSON; a {@link JsonAnswer} is JSON already. */
  readonly run: (call: RegistryRouteCall) => Promise<unknown>
}

const OK = { ok: true }

const register: RegistryRoute = {
  name: 'register',
  method: 'POST',
  async run({ registry, request, hold, maxBodyBytes, identity, account, rights }) {
    const card = await readJsonBody(request, hold, maxBodyBytes, 'card')
    const agentId = claimedId(card)
    if (agentId !== undefined) rights?.authorize('register', 'agents', agentId)
    return registry.register(card, { ...callerOf(request, identity), account })
  },
}

const list: RegistryRoute = {
  name: 'list',
  method: 'GET',
  async run({ registry, query, rights }) {
    const visible = (agentId: string): boolean => rights === undefined || rights.permits('list', 'agents', agentId)
    const { text, next } = await listPage(registry, readListQuery(query), visible)
    return new JsonAnswer(text, next === undefined ? {} : { Link: nextLink(query, next) })
  },
}

const get: RegistryRoute = {
  name: 'get',
  method: 'GET',
  async run({ registry, agentId, rights }) {
    rights?.authorize('list', 'agents', agentId)
    const card = await registry.find(agentId)
    if (card === undefined)
      throw new RegistryError('AGENT_NOT_FOUND', 'no such agent is registered; GET /agents lists those that are')
    return card
  },
}

/** A call that names an agent in its body. */
function agentCall(name: 'deregister' | 'heartbeat'): RegistryRoute {
  return {
    name,
    method: 'POST',
    async run({ registry, request, hold, maxBodyBytes, identity, rights }) {
      const agentId = agentIdOf(await readJsonBody(request, hold, maxBodyBytes, 'call'))
      rights?.authorize('register', 'agents', agentId)
      await registry[name](agentId, callerOf(request, identity))
      return OK
    },
  }
}

const remove: RegistryRoute = {
  name: 'delete',
  method: 'DELETE',
  async run({ registry, agentId, request, identity, rights }) {
    rights?.authorize('register', 'agents', agentId)
    await registry.deregister(agentId, callerOf(request, identity))
    return OK
  },
}

/** `register` and the like could be the id of an agent as well: GET and DELETE of such a path mean the agent. */
const CALLS: ReadonlyMap<string, RegistryRoute> = new Map(
  [register, agentCall('deregister'), agentCall('heartbeat')].map((route) => [route.name, route]),
)

/** The routes at a path (specification, "Registry endpoints"), one for each method; undefined where there are none. */
export function routesAt(
  path: string,
): { readonly agentId: string; readonly routes: readonly RegistryRoute[] } | undefined {
  if (path === '/agents') return { agentId: '', routes: [list] }
  const [, name] = /^\/agents\/([^/]+)$/.exec(path) ?? []
  if (name === undefined) return undefined
  const call = CALLS.get(name)
  return { agentId: decoded(name), routes: call === undefined ? [get, remove] : [call, get, remove] }
}

/** What is not percent-encoded UTF-8 is nobody's id. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return ''
  }
}

function callerOf(request: IncomingMessage, identity: Identity): RegistryCaller {
  const address = addressOf(request)
  return {
    clientId: identity.clientId,
    admin: hasRole(identity, 'Admin'),
    ...(address === undefined ? {} : { address }),
  }
}

/** The id that a card asks for; a card without one is refused by the registry, with whatever else is wrong with it. */
function claimedId(card: unknown): string | undefined {
  if (typeof card !== 'object' || card === null || !('agent_id' in card)) return undefined
  return typeof card.agent_id === 'string' ? card.agent_id : undefined
}
