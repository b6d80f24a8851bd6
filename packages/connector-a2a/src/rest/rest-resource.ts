import type { Operation } from '../wire/index.ts'

/** A resource of the HTTP+JSON binding of A2A 1.0 (section 11.3). */
export interface RestResource {
  readonly agentId: string
  /** The operations by HTTP method. */
  readonly operations: ReadonlyMap<string, Operation>
  /** The members of the request that the path names. */
  readonly members: Readonly<Record<string, string>>
}

type Found = Omit<RestResource, 'agentId'>

const SEND = new Map<string, Operation>([['POST', 'send']])
const STREAM = new Map<string, Operation>([['POST', 'stream']])
const LIST = new Map<string, Operation>([['GET', 'list']])
const GET = new Map<string, Operation>([['GET', 'get']])
const CANCEL = new Map<string, Operation>([['POST', 'cancel']])
// The specification's text has POST, its Protocol Buffers have GET.
const SUBSCRIBE = new Map<string, Operation>([
  ['GET', 'resubscribe'],
  ['POST', 'resubscribe'],
])
const PUSH_CONFIGS = new Map<string, Operation>([
  ['GET', 'push-list'],
  ['POST', 'push-create'],
])
const PUSH_CONFIG = new Map<string, Operation>([
  ['GET', 'push-get'],
  ['DELETE', 'push-delete'],
])
const EXTENDED_CARD = new Map<string, Operation>([['GET', 'extended-card']])
const VERBS = { ':cancel': CANCEL, ':subscribe': SUBSCRIBE } as const

/** The paths of the operations below the agent's url, with a name in braces for a part that varies. */
export const REST_PATHS: { readonly [Name in Operation]: string } = {
  send: '/message:send',
  stream: '/message:stream',
  list: '/tasks',
  get: '/tasks/{id}',
  cancel: '/tasks/{id}:cancel',
  resubscribe: '/tasks/{id}:subscribe',
  'push-list': '/tasks/{id}/pushNotificationConfigs',
  'push-create': '/tasks/{id}/pushNotificationConfigs',
  'push-get': '/tasks/{id}/pushNotificationConfigs/{configId}',
  'push-delete': '/tasks/{id}/pushNotificationConfigs/{configId}',
  'extended-card': '/extendedAgentCard',
}

/**
 * Returns the resource of a path; undefined if there is none.
 * @param path The path below `/a2a/`, percent-encoded: ids may contain slashes and colons
 */
export function restResource(path: string): RestResource | undefined {
  const [agent, ...segments] = path.split('/')
  if (segments.includes('')) return undefined
  try {
    const found = resourceAt(segments) ?? tenantResourceAt(segments)
    return found === undefined ? undefined : { agentId: decodeURIComponent(agent ?? ''), ...found }
  } catch {
    // A segment that cannot be decoded.
    return undefined
  }
}

function tenantResourceAt([tenant = '', ...segments]: readonly string[]): Found | undefined {
  const found = resourceAt(segments)
  if (found === undefined) return undefined
  return { ...found, members: { tenant: decodeURIComponent(tenant), ...found.members } }
}

function resourceAt([collection = '', task, configs, config, ...rest]: readonly string[]): Found | undefined {
  if (collection === 'tasks') {
    if (task === undefined) return { operations: LIST, members: {} }
    if (configs === undefined) return taskAt(task)
    if (configs !== 'pushNotificationConfigs' || rest.length > 0) return undefined
    const taskId = decodeURIComponent(task)
    if (config === undefined) return { operations: PUSH_CONFIGS, members: { taskId } }
    return { operations: PUSH_CONFIG, members: { taskId, id: decodeURIComponent(config) } }
  }
  if (task !== undefined) return undefined
  // Some HTTP clients encode the colon.
  const name = decodeURIComponent(collection)
  if (name === 'message:send') return { operations: SEND, members: {} }
  if (name === 'message:stream') return { operations: STREAM, members: {} }
  return name === 'extendedAgentCard' ? { operations: EXTENDED_CARD, members: {} } : undefined
}

function taskAt(segment: string): Found {
  for (const [verb, operations] of Object.entries(VERBS)) {
    if (segment.endsWith(verb) && segment.length > verb.length) {
      return { operations, members: { id: decodeURIComponent(segment.slice(0, -verb.length)) } }
    }
  }
  return { operations: GET, members: { id: decodeURIComponent(segment) } }
}
