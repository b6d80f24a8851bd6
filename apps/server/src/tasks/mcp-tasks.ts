import type { BrokerHandle, Engine } from '@signalbox/broker-core'
import type { TaskOptions } from '@signalbox/connector-mcp'
import { brokerTaskStore } from '@signalbox/connector-mcp'

import type { Config } from '../config/schema.ts'
import type { ServerFrontDoor } from '../limits/front-door.ts'
import type { LimitMetrics } from '../limits/limit-metrics.ts'

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
