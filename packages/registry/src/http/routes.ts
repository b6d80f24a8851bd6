import type { IncomingMessage } from 'node:http'

import type { Identity } from '@signalbox/http-kit'
import { hasRole } from '@signalbox/http-kit'

import type { AgentRegistry } from '../agent-registry.ts'
import { RegistryError } from '../errors.ts'
import type { RegistryCaller } from '../options.ts'
import { agentIdOf, readJson } from './json-body.ts'
import { readListQuery } from './list-query.ts'

/** What a route works with: origin and caller have been checked, the body has not been read. */
export interface RouteCall {
  readonly registry: AgentRegistry
  readonly request: IncomingMessage
  readonly maxBodyBytes: number
  readonly identity: Identity
  /** Of the path `/agents/{agent_id}`; otherwise empty. */
  readonly agentId: string
  /** Without its question mark. */
  readonly query: string
}

export interface Route {
  readonly name: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Status 200 with this as JSON. */
  readonly run: (call: RouteCall) => Promise<unknown>
}

const OK = { ok: true }

const register: Route = {
  name: 'register',
  method: 'POST',
  run: async ({ registry, request, maxBodyBytes, identity }) =>
    registry.register(await readJson(request, maxBodyBytes, 'card'), callerOf(identity)),
}

const list: Route = {
  name: 'list',
  method: 'GET',
  run: async ({ registry, query }) => registry.list(readListQuery(query)),
}

const get: Route = {
  name: 'get',
  method: 'GET',
  async run({ registry, agentId }) {
    const card = await registry.find(agentId)
    if (card === undefined)
      throw new RegistryError('AGENT_NOT_FOUND', 'no such agent is registered; GET /agents lists those that are')
    return card
  },
}

const deregister: Route = {
  name: 'deregister',
  method: 'POST',
  async run({ registry, request, maxBodyBytes, identity }) {
    await registry.deregister(agentIdOf(await readJson(request, maxBodyBytes, 'call')), callerOf(identity))
    return OK
  },
}

const remove: Route = {
  name: 'delete',
  method: 'DELETE',
  async run({ registry, agentId, identity }) {
    await registry.deregister(agentId, callerOf(identity))
    return OK
  },
}

const heartbeat: Route = {
  name: 'heartbeat',
  method: 'POST',
  async run({ registry, request, maxBodyBytes, identity }) {
    await registry.heartbeat(agentIdOf(await readJson(request, maxBodyBytes, 'call')), callerOf(identity))
    return OK
  },
}

/** `register` and the like could be the id of an agent as well: GET and DELETE of such a path mean the agent. */
const CALLS: ReadonlyMap<string, Route> = new Map([register, deregister, heartbeat].map((route) => [route.name, route]))

/** The routes at a path (specification, "Registry endpoints"), one for each method; undefined where there are none. */
export function routesAt(path: string): { readonly agentId: string; readonly routes: readonly Route[] } | undefined {
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

function callerOf(identity: Identity): RegistryCaller {
  return { clientId: identity.clientId, admin: hasRole(identity, 'Admin') }
}
