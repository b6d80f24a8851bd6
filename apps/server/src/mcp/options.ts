import type { BrokerHandle, Engine } from '@signalbox/broker-core'
import type { McpCardOptions, McpOAuthOptions, TaskOptions } from '@signalbox/connector-mcp'
import { brokerTaskStore } from '@signalbox/connector-mcp'
import type { EventTypeOptions, EventWebhooks, McpEvents } from '@signalbox/connector-mcp/events'
import { readPublicUrl } from '@signalbox/http-kit/internal'

import type { Config } from '../config/schema.ts'
import type { ServerFrontDoor } from '../limits/front-door.ts'
import type { LimitMetrics } from '../limits/limit-metrics.ts'

/** The name of the server in the MCP registry, and in the `mcpName` of its package. */
const REGISTRY_NAME = 'io.github.signalbox/signalbox'

/** Returns the options of the server card of `/mcp`. */
export function serverCard(publicUrl: string): McpCardOptions {
  return {
    name: REGISTRY_NAME,
    description: 'A message broker: queues, events, stored events, commands, queries and agents as tools.',
    ...(publicUrl === '' ? {} : { publicUrl }),
  }
}

/** Returns the options of `/mcp` as a protected resource of OAuth; undefined if the mode is off. */
export function oauthOptions({ authentication, publicUrl }: Config): McpOAuthOptions | undefined {
  const { issuer, oauth } = authentication
  if (!oauth.enable) return undefined
  const { authorizationServers, scopePrefix } = oauth
  return {
    resource: resourceOf(publicUrl),
    authorizationServers: authorizationServers.length > 0 ? authorizationServers : [issuer],
    scopePrefix,
  }
}

/**
 * Returns the identifier of `/mcp` at authorization servers. It never depends on a request.
 * @throws RangeError for an invalid public URL
 */
export function resourceOf(publicUrl: string): string {
  return `${readPublicUrl(publicUrl)}/mcp`
}

export interface TaskParts {
  /** The handle for reserved channels. */
  readonly system: BrokerHandle
  readonly engine: Pick<Engine, 'capabilities'>
  readonly frontDoor: Pick<ServerFrontDoor, 'maxTasksOf'>
  readonly metrics: Pick<LimitMetrics, 'refused'>
}

/** Returns the options of the tasks of `/mcp`; `undefined` if they are turned off. */
export function mcpTasks(
  { connectors: { mcp } }: Config,
  { system, engine, frontDoor, metrics }: TaskParts,
): TaskOptions | undefined {
  const { enable, afterMs, ttlSeconds, max, maxResultBytes } = mcp.tasks
  if (!enable) return undefined
  return {
    // Only nodes of a cluster share a store: the embedded one belongs to this process.
    store: brokerTaskStore(system, { shared: engine.capabilities.remoteStorage }),
    afterMs,
    ttlMs: ttlSeconds * 1000,
    maxTasks: max,
    maxTasksOf: frontDoor.maxTasksOf,
    maxResultBytes,
    // The call continues without a task, so this is no refusal for the log.
    limited: (limit) => metrics.refused(limit),
  }
}

export interface EventParts {
  /** The handle for reserved channels. */
  readonly system: BrokerHandle
  readonly types: readonly EventTypeOptions[]
  /** Absent if webhooks are turned off. */
  readonly webhooks: EventWebhooks | undefined
}

/**
 * Returns the event types of operators. The modules that read them are loaded only if there is a file.
 * @throws ServerError CONFIG_INVALID
 */
export async function mcpEventTypes({ connectors: { mcp } }: Config): Promise<readonly EventTypeOptions[]> {
  if (mcp.eventTypesFile === '') return []
  const { readEventTypes } = await import('./event-types-file.ts')
  return readEventTypes(mcp.eventTypesFile)
}

/** Returns the events of `/mcp`; `undefined` if they are turned off: their modules are not loaded then. */
export async function openMcpEvents(
  { connectors: { mcp } }: Config,
  { system, types, webhooks }: EventParts,
): Promise<McpEvents | undefined> {
  if (!mcp.events) return undefined
  const { mcpEvents } = await import('@signalbox/connector-mcp/events')
  return mcpEvents({ system, types, codes: mcp.eventCodes, webhooks })
}
