import type { AgentAddressPolicy } from './url-safety/agent-address-policy.ts'
import type { AgentCard } from './card/agent-card.ts'

/** What the registry counts (specification, metric `broker_a2a_registry_operations_total`). */
export type RegistryOperation = 'register' | 'deregister' | 'heartbeat' | 'expire'

export interface OperationDetail {
  /** Absent where the call named none that could be one. */
  readonly agentId?: string
  /** Who asked; absent on `expire`. */
  readonly clientId?: string
  /** From where; absent where the caller's was. */
  readonly address?: string
  /** Of an error: one of the registry's codes or of the Broker's, or INTERNAL. */
  readonly code?: string
}

/** A limit that a caller met. */
export interface AgentLimitEvent {
  readonly limit: 'caller_agents'
  /** `client:{ClientID}` or `address:{network}`. */
  readonly account: string
}

/** Called on the path of the registry: be quick. What they throw is dropped. */
export interface RegistryHooks {
  /** A call ended, or an agent was expired by this node. */
  operation?(op: RegistryOperation, status: 'success' | 'error', detail: OperationDetail): void
  /** A registration was refused because its caller owns as many agents as it may. */
  limited?(event: AgentLimitEvent): void
  /** Something failed that no caller is told about: an entry that could not be read, a store that is away. For the log. */
  failed?(error: unknown): void
}

export interface RegistryOptions {
  /** An agent without a heartbeat or registration for this long is expired (R5); fractions count; 0 is never. @default 300 */
  readonly agentTtlSeconds?: number
  /** How long the id of an expired agent stays its owner's, in seconds; 0 is not at all. @default 86400 */
  readonly idHoldSeconds?: number
  /** Agents registered at a time, over the whole cluster (R7); 0 is no limit. @default 0 */
  readonly maxAgents?: number
  /** Agents that a caller may own at a time, counted by {@link RegistryCaller.account}; 0 is no limit. @default agentShares(maxAgents) */
  readonly maxAgentsOf?: (caller: RegistryCaller) => number
  /** What the cards of all agents may take in this node's memory, in bytes; one owner's take half. @default a quarter of V8's heap limit */
  readonly maxCardMemoryBytes?: number
  /** Which addresses agents may have (R8). @default all but those that are always refused */
  readonly addressPolicy?: AgentAddressPolicy
  /** Wait when the engine does not answer while the registry opens, for as long as it takes; otherwise ENGINE_UNAVAILABLE. @default false */
  readonly waitForEngine?: boolean
  readonly hooks?: RegistryHooks
}

/** Who calls, verified at the edge. */
export interface RegistryCaller {
  readonly clientId: string
  /** What its agents count against: `client:{ClientID}`, or `address:{network}` while callers are anonymous. @default client:{clientId} */
  readonly account?: string
  /** Has the role Admin, which may act on agents of others (R4). @default false */
  readonly admin?: boolean
  /** Where the call came from, for those who keep a record. */
  readonly address?: string
}

/** What changed in the registry, on whichever node. */
export interface RegistryChange {
  /** `updated`: registered again with a card. Heartbeats are no change. */
  readonly kind: 'registered' | 'updated' | 'removed'
  readonly agentId: string
  /** The card as it is now; absent when removed. */
  readonly card?: AgentCard
}

/** How a host uses {@link AgentRegistry.list}. */
export interface AgentFilter {
  /** Agents with a skill that carries any of these tags (R3); none are all agents. */
  readonly skillTags?: readonly string[]
  /** At most so many, from the first `agent_id` on; 1 or more. @default all */
  readonly limit?: number
  /** Only agents whose `agent_id` comes after this one, registered or not. @default from the first */
  readonly after?: string
}
