import type { Caller } from '../caller.ts'

/** A part of the registered agents, in the order of `agent_id`. */
export interface AgentFilter {
  /** Skill tags; selects agents with a skill that has any of them. @default all agents */
  readonly skillTags?: readonly string[] | undefined
  /** The most agents to return, 1 or more. @default all */
  readonly limit?: number
  /**
   * Selects agents whose `agent_id` comes after this one. The id need not be registered.
   * @default from the first agent
   */
  readonly after?: string | undefined
}

/** One page of the registered agents. */
export interface AgentPage extends AgentFilter {
  readonly limit: number
}

/** An agent card. The named fields are those that other packages read; other fields are passed on unchanged. */
export interface AgentCard {
  readonly agent_id: string
  readonly name: string
  readonly skills?: readonly AgentSkill[]
  readonly [field: string]: unknown
}

/** A skill in an agent card. */
export interface AgentSkill {
  readonly id: string
  readonly name: string
  readonly tags?: readonly string[]
  readonly [field: string]: unknown
}

/** Counts the bytes of a reply in the budgets of its caller, until the answer with it is written. */
export interface ReplyBudget {
  /** Returns the refusal if a limit is reached; then nothing is counted. */
  charge(bytes: number): { readonly message: string } | undefined
  /** Returns the refusal of a reply of this size if memory is short. */
  refusesBody(bytes: number): { readonly message: string } | undefined
}

/** Options of a request to an agent. */
export interface AgentRequestOptions {
  /** The caller of the request. The agent receives it as `X-Broker-Caller-ID`. */
  readonly caller: Caller
  /**
   * Time within which the agent must answer, in ms; above 0. Values over the gateway's MaxTimeoutSeconds are capped.
   * @default the gateway's DefaultTimeoutSeconds
   */
  readonly timeoutMs?: number | undefined
  /** Number of brokers that the request passed before this one. @default 0 */
  readonly hops?: number | undefined
  /** Headers of the caller that are forwarded to the agent. @default none */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** `true` if the headers name a recorded span: the call of the agent is recorded within it. @default false */
  readonly traced?: boolean | undefined
  /** Ends the wait when aborted; the request then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /**
   * Aborted when the caller can no longer receive the reply. A request that no node of the agent has accepted is then
   * dropped, and rejects with the signal's reason. An accepted request continues.
   * @default the request always continues
   */
  readonly callerGone?: AbortSignal | undefined
  /**
   * Counts the bytes of the reply until the answer with it is written. The request is refused if memory is short.
   * @default the bytes count only until the request resolves
   */
  readonly hold?: ReplyBudget | undefined
  /**
   * Resolves as soon as the agent's node has accepted the request, without waiting for the agent. The reply is then
   * `executed` with an empty body.
   * @default false
   */
  readonly acceptOnly?: boolean | undefined
}

/** The outcome of a request to an agent. */
export interface AgentReply {
  /** `false` if the agent never processed the request; `error` is the reason. */
  readonly executed: boolean
  /** The reason if `executed` is `false`; otherwise empty. */
  readonly error: string
  /** The reason if there is no response to pass on, such as `too_large`, `invalid_response` or `busy`. */
  readonly failure?: string | undefined
  /** `true` if it is certain that the agent did not get the request. */
  readonly unsent?: boolean | undefined
  /** HTTP status of the agent's response; 0 without a response. */
  readonly status: number
  /** The unchanged bytes of the agent's response. */
  readonly body: Uint8Array
}

/** The refusal of a call of {@link InboxLeases}, with a stable code. */
export interface AgentRefusal {
  readonly refused: string
  readonly message: string
}

/** A request that an agent has leased from its inbox. */
export interface AgentInboxRequest {
  /** Names the lease in later calls. */
  readonly receipt: string
  readonly taskId: string
  readonly contextId: string
  /** The number of this delivery, from 1. */
  readonly attempt: number
  /** The end of the lease, in ms since the epoch. */
  readonly leaseUntil: number
  /** The verified ClientID of the caller of the agent. */
  readonly callerId: string
  /** A SendMessageRequest of A2A 1.0. */
  readonly request: Readonly<Record<string, unknown>>
}

/** The state of a leased request after a reply. */
export interface AgentInboxReceipt {
  /** `true` if a caller has canceled the task. */
  readonly cancelRequested: boolean
  /** The end of the lease, in ms since the epoch. */
  readonly leaseUntil: number
}

/**
 * The inboxes of agents that fetch their requests. Only the owner of an agent and callers with the role Admin may use
 * its inbox.
 */
export interface InboxLeases {
  /** Leases the next request; `undefined` if none came in time. Counts as a heartbeat. */
  take(
    agentId: string,
    options: {
      readonly caller: Caller
      /** The time to wait for a request, in ms. */
      readonly waitMs: number
      /** The time for which the request is leased, in ms. */
      readonly leaseMs: number
      /** Ends the wait. */
      readonly signal: AbortSignal
    },
  ): Promise<AgentInboxRequest | AgentRefusal | undefined>
  /** Adds events to the task of a leased request. An interrupted or final state settles the request. */
  reply(
    agentId: string,
    options: {
      readonly caller: Caller
      readonly receipt: string
      /** StreamResponses of A2A 1.0. */
      readonly events: readonly Readonly<Record<string, unknown>>[]
      /** The time for which the request is leased from now on, in ms. */
      readonly leaseMs: number
    },
  ): Promise<AgentInboxReceipt | AgentRefusal>
  /** Returns a leased request for another delivery. */
  release(
    agentId: string,
    options: { readonly caller: Caller; readonly receipt: string },
  ): Promise<AgentRefusal | undefined>
}

/**
 * The agent registry and gateway, as connectors use them. The implementation has access to the broker's own channels;
 * connectors have not.
 */
export interface AgentDirectory {
  /** Returns agents in the order of `agent_id`. */
  list(filter: AgentPage): Promise<readonly AgentCard[]>
  /**
   * Returns the card of an agent, or `undefined` if no such agent is registered. An invalid id is an unregistered
   * one.
   */
  get(agentId: string): Promise<AgentCard | undefined>
  /**
   * Forwards one JSON-RPC request as a Query to a node that serves the agent. A request of A2A 0.3 or 1.0 is written
   * in the version that the agent speaks; the answer is not changed. A message to an agent with `a2a.durable` runs once
   * for its `messageId`: a repeat gets the answer of the first. The Query's timeout is GatewayTimeoutBuffer (10 s)
   * longer than that of the agent.
   *
   * @throws BrokerError REQUEST_TIMEOUT or NO_SUBSCRIBER without an answer in time, ENGINE_UNAVAILABLE
   */
  request(
    agentId: string,
    envelope: Uint8Array,
    options: AgentRequestOptions & {
      /** The method in the envelope. The agent may get the request in the version of A2A that it speaks. */
      readonly method: string
    },
  ): Promise<AgentReply>
  /** The inboxes of agents. @default agents have none */
  readonly inboxes?: InboxLeases | undefined
}
