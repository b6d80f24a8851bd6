import type { OutboundConnections } from '@signalbox/http-kit/internal'

import type { AgentAddressPolicy } from './agent-addresses.ts'
import type { AgentCard } from './card/agent-card.ts'
import type { OperatorCredentialsOf } from './credentials/agent-authorization.ts'

/** The operations that the registry counts. */
export type RegistryOperation = 'register' | 'deregister' | 'heartbeat' | 'expire' | 'park'

export interface OperationDetail {
  /** Absent when the call named no valid agent_id. */
  readonly agentId?: string | undefined
  /** Absent when the call named no instance. */
  readonly instanceId?: string | undefined
  /** The ClientID of the caller; absent on `expire` and `park`. */
  readonly clientId?: string
  /** The caller's network address; absent when the caller had none. */
  readonly address?: string | undefined
  /** The code of an error: one of the registry or of the Broker, or INTERNAL. */
  readonly code?: string
}

/** A limit that a caller reached. */
export interface AgentLimitEvent {
  readonly limit: 'caller_agents'
  /** `client:{ClientID}` or `address:{network}`. */
  readonly account: string
}

/** Called synchronously by the registry, so they must be quick. Their errors are dropped. */
export interface RegistryHooks {
  /** Called when a call ended, or this node expired or parked an agent. */
  operation?(op: RegistryOperation, status: 'success' | 'error', detail: OperationDetail): void
  /** Called when a registration was refused because its caller owns the maximum number of agents. */
  limited?(event: AgentLimitEvent): void
  /**
   * Called with a failure that no caller sees, such as an unreadable entry or an unavailable store. For the
   * log.
   */
  failed?(error: unknown): void
}

export interface RegistryOptions {
  /**
   * The time without a heartbeat or registration after which an agent expires, in seconds; fractions are
   * allowed; 0 means never. @default 300
   */
  readonly agentTtlSeconds?: number
  /**
   * The time for which the id of an expired agent is held for its owner, in seconds; 0 means not at all.
   * @default 86400
   */
  readonly idHoldSeconds?: number
  /**
   * The time for which an expired agent with an inbox stays registered as `offline`, in seconds; 0 removes it when it
   * expires.
   * @default 604800
   */
  readonly parkSeconds?: number
  /**
   * `off`: the server keeps no log of agents, so cards with `a2a.durable`, `a2a.pull` or `a2a.offline` of `queue` are
   * refused, and no agent is parked. @default 'auto'
   */
  readonly log?: 'auto' | 'off'
  /** The maximum number of registered agents in the whole cluster; 0 means no limit. @default 0 */
  readonly maxAgents?: number
  /** The maximum number of instances of one agent, 1 or more. @default 32 */
  readonly maxInstances?: number
  /**
   * Returns the maximum number of agents that a caller may own, counted by {@link RegistryCaller.account}; 0
   * means no limit. @default agentShares(maxAgents)
   */
  readonly maxAgentsOf?: (caller: RegistryCaller) => number
  /**
   * The maximum memory of the cards of all agents on this node, in bytes; one owner's cards may use half of
   * it. @default an eighth of the memory that the process may use
   */
  readonly maxCardMemoryBytes?: number
  /** The addresses that agents may have. @default all except those that are always refused */
  readonly addressPolicy?: AgentAddressPolicy
  /** The connections of the registry's own requests, closed with it. @default direct ones, with the system's authorities */
  readonly connections?: OutboundConnections
  /**
   * The key that seals credentials of agents, 32 bytes; the same on all nodes. See `openKeyFile` of http-kit.
   * @default none: cards with credentials are refused
   */
  readonly credentialsKey?: Uint8Array | undefined
  /** Returns the operator's credentials for an agent, which win over registered ones. @default none */
  readonly operatorCredentials?: OperatorCredentialsOf | undefined
  /**
   * Waits without limit while the engine is unavailable at the start; `false` rejects with
   * ENGINE_UNAVAILABLE. @default false
   */
  readonly waitForEngine?: boolean
  /** Receives the outcomes of calls, reached limits, and failures. @default none */
  readonly hooks?: RegistryHooks
}

/** A verified caller. */
export interface RegistryCaller {
  readonly clientId: string
  /**
   * The account that the caller's agents count against: `client:{ClientID}`, or `address:{network}` while
   * callers are anonymous. @default client:{clientId}
   */
  readonly account?: string | undefined
  /** `true` for a caller with the role Admin, which may act on the agents of other owners. @default false */
  readonly admin?: boolean
  /** The caller's network address, for the audit log. */
  readonly address?: string | undefined
}

/** A change of the registry, made on any node. */
export interface RegistryChange {
  /**
   * `updated` means registered again with a card, that an instance came or left, or that the agent was parked or came
   * back. Other heartbeats cause no change.
   */
  readonly kind: 'registered' | 'updated' | 'removed'
  readonly agentId: string
  /** The current card; absent when the agent was removed. */
  readonly card?: AgentCard
}
