import type { Broker, BrokerHandle, ChannelType } from '@signalbox/broker-core'
import type { Identity } from '@signalbox/http-kit'

/** The ports through which other packages provide data to the management API. */

/** An agent as operators see it. */
export interface AgentStatus {
  readonly agent_id: string
  readonly name: string
  readonly version: string
  readonly url: string
  /** The owner's ClientID; empty if the agent has no owner. */
  readonly registered_by: string
  /** In ms since the epoch, as {@link last_seen} is. */
  readonly registered_at: number
  readonly last_seen: number
  /**
   * The time of expiry without another heartbeat, in ms since the epoch; null if agents do not
   * expire.
   */
  readonly expires_at: number | null
  /** Requests under way from this node to the agent, including streams. */
  readonly in_flight: number
  /** @default none, for an agent that was registered without instances */
  readonly instances?: readonly AgentInstanceStatus[]
}

/** An instance of an agent. The members mean the same as those of the agent. */
export type AgentInstanceStatus = Pick<
  AgentStatus,
  'url' | 'registered_at' | 'last_seen' | 'expires_at' | 'in_flight'
> & { readonly instance_id: string }

export interface AgentsPort {
  list(): readonly AgentStatus[] | Promise<readonly AgentStatus[]>
  /**
   * Removes the agent, or one instance of it, on behalf of an Admin; false if it is not registered.
   * @param instanceId @default the agent with all its instances
   */
  deregister(agentId: string, operator: Identity, instanceId?: string): Promise<boolean>
}

/** A webhook subscription as operators see it. */
export interface WebhookStatus {
  readonly id: string
  /** The ClientID of the owner. */
  readonly owner: string
  readonly type: ChannelType
  readonly channel: string
  readonly endpoint: string
  readonly format: string
  readonly filter?: string
  readonly ordered: boolean
  readonly state: 'active' | 'failing' | 'paused' | 'disabled'
  readonly reason?: string
  /** In ms since the epoch. */
  readonly createdMs: number
  /** The first sequence of an events store that is not delivered. */
  readonly next?: number
  readonly deadLetterQueue: string
}

/** The webhook subscriptions. Calls with an unknown id resolve with undefined. */
export interface WebhooksPort {
  list(): readonly WebhookStatus[]
  pause(id: string): Promise<WebhookStatus | undefined>
  resume(id: string): Promise<WebhookStatus | undefined>
  /** Sends a signed test message to the endpoint. `status` is absent without an answer. */
  test(id: string): Promise<{ readonly status?: number; readonly error?: string } | undefined>
  /** Replaces the secret by a generated one, and resolves with it. For a time, both sign deliveries. */
  rotateSecret(id: string): Promise<string | undefined>
  /** Delivers an events store from a sequence on. Rejects with ARGUMENT_INVALID for another source. */
  redeliver(id: string, sequence: number): Promise<WebhookStatus | undefined>
}

/** The state of this node; the fields of `/ready`. */
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

/** The services that exist once initialization has finished. */
export interface ManagementServices {
  readonly broker: Broker
  /** The handle for reserved channels, for the audit log's channel. */
  readonly system: BrokerHandle
  /** Absent if agents are turned off. */
  readonly agents?: AgentsPort
  /** Absent if webhooks are turned off. */
  readonly webhooks?: WebhooksPort
}
