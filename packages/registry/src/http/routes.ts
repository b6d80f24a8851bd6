import { fairTurns } from '@signalbox/http-kit/internal'

import { RegistryError } from '../errors.ts'
import { isByCardUrl } from '../probes/served-card.ts'
import { listPage, nextLink, readListQuery } from './agent-list.ts'
import { inboxRouteAt } from './inbox-routes.ts'
import { agentCallOf, registrationName } from './json-body.ts'
import { JsonAnswer } from './registry-exchange.ts'
import type { RegistryRoute } from './registry-route.ts'
import { callerOf } from './registry-route.ts'

const OK = { ok: true }

const register: RegistryRoute = {
  name: 'register',
  method: 'POST',
  body: 'card',
  async run({ registry, request, body: given, identity, account, rights }) {
    const caller = { ...callerOf(request, identity), account }
    const claimed = claimedId(given)
    if (claimed !== undefined) rights?.authorize('register', 'agents', claimed)
    else if (isByCardUrl(given)) rights?.requireCredentials('register', 'agents')
    const card = await registry.readCard(given, caller)
    // The card that the agent serves may have another id.
    const agentId = claimedId(card)
    if (agentId !== undefined && agentId !== claimed) rights?.authorize('register', 'agents', agentId)
    return registry.register(card, caller)
  },
}

const list: RegistryRoute = {
  name: 'list',
  method: 'GET',
  async run({ registry, query, rights, account }) {
    rights?.requireCredentials('list', 'agents')
    const visible = (agentId: string): boolean => rights === undefined || rights.permits('list', 'agents', agentId)
    const steps = listPage(registry, readListQuery(query), visible)
    const first = steps.next()
    const { text, next } = first.done === true ? first.value : await fairTurns.steps(account, steps)
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
      throw new RegistryError('AGENT_NOT_FOUND', 'no such agent is registered; GET /agents lists the registered agents')
    return card
  },
}

/** Creates a route whose body names the agent. */
function agentCall(name: 'deregister' | 'heartbeat'): RegistryRoute {
  return {
    name,
    method: 'POST',
    body: 'call',
    async run({ registry, request, body, identity, rights }) {
      const { agentId, name: registration } = agentCallOf(body)
      rights?.authorize('register', 'agents', agentId)
      await registry[name](agentId, callerOf(request, identity), registration)
      return OK
    },
  }
}

const remove: RegistryRoute = {
  name: 'delete',
  method: 'DELETE',
  async run({ registry, agentId, query, request, identity, rights }) {
    rights?.authorize('register', 'agents', agentId)
    const parameters = new URLSearchParams(query)
    const of = (name: string): string | undefined => parameters.get(name) ?? undefined
    const name = registrationName('PARAMETER_INVALID', of('instance_id'), of('url'))
    await registry.deregister(agentId, callerOf(request, identity), name)
    return OK
  },
}

/**
 * `register`, `deregister` and `heartbeat` are valid agent_ids too: GET and DELETE of such a path address
 * the agent.
 */
const CALLS: ReadonlyMap<string, RegistryRoute> = new Map(
  [register, agentCall('deregister'), agentCall('heartbeat')].map((route) => [route.name, route]),
)

interface FoundRoutes {
  readonly agentId: string
  readonly routes: readonly RegistryRoute[]
  /** Returns the path of a route, with a name in braces for the part that varies. */
  template(route: RegistryRoute): string
}

/**
 * Returns the routes of a path, one for each method; undefined for an
 * unknown path.
 * @param inbox `true` if the server has inboxes
 */
export function routesAt(path: string, inbox: boolean): FoundRoutes | undefined {
  if (path === '/agents') return { agentId: '', routes: [list], template: () => path }
  const [, name, rest] = /^\/agents\/([^/]+)(?:\/inbox(|\/[^/]+))?$/.exec(path) ?? []
  if (name === undefined) return undefined
  if (rest !== undefined) {
    const route = inbox ? inboxRouteAt(rest) : undefined
    return route && { agentId: decoded(name), routes: [route], template: () => `/agents/{agent_id}/inbox${rest}` }
  }
  const call = CALLS.get(name)
  const template = (route: RegistryRoute): string => (route === call ? path : '/agents/{agent_id}')
  return { agentId: decoded(name), routes: call === undefined ? [get, remove] : [call, get, remove], template }
}

/**
 * Decodes a path segment. Returns an empty text, which is not an agent_id, unless the segment is
 * percent-encoded UTF-8.
 */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return ''
  }
}

/**
 * Returns the agent_id of a card. The registry itself refuses a card without one, and lists its other
 * problems too.
 */
function claimedId(card: unknown): string | undefined {
  if (typeof card !== 'object' || card === null || !('agent_id' in card)) return undefined
  return typeof card.agent_id === 'string' ? card.agent_id : undefined
}
