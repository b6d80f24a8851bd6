import type { Broker, BrokerHandle } from '@signalbox/broker-core'
import type { Identity } from '@signalbox/http-kit'

/** What other rooms give to this one. */

/** An agent as operators see it. */
export interface AgentStatus {
  readonly agent_id: string
  readonly name: string
  readonly version: string
  readonly url: string
  /** Empty when nobody owns it. */
  readonly registered_by: string
  /** Milliseconds since the epoch, as {@link last_seen} is. */
  readonly registered_at: number
  readonly last_seen: number
  /** When it expires unless it is heard of again, milliseconds since the epoch; null when agents do not expire. */
  readonly expires_at: number | null
  /** Requests that this node has with the agent at the moment, streams included. */
  readonly in_flight: number
}

export interface AgentsPort {
  list(): readonly AgentStatus[] | Promise<readonly AgentStatus[]>
  /** Removes the agent in the name of an Admin; false when it is not registered. */
  deregister(agentId: string, operator: Identity): Promise<boolean>
}

/** How this node is; the fields of `/ready`. */
export interface NodeStatus {
  readonly ready: boolean
  readonly healthy: boolean
  readonly node: string
  readonly version: string
  readonly engine: string
  readonly uptime_seconds: number
}

export interface MetricsPort {
  readonly contentType: string
  text(): Promise<string>
}

/** What the management API works on, there once initialization has finished. */
export interface ManagementServices {
  readonly broker: Broker
  /** The broker's own handle, for the audit log's channel. */
  readonly system: BrokerHandle
  /** Absent where agents are turned off. */
  readonly agents?: AgentsPort
}
