import type { Caller } from '@signalbox/broker-core'

/** Which agents `agent_list` asks for: a part of the list at a time. */
export interface AgentFilter {
  /** Agents with a skill that carries any of these tags (R3). Left out: all agents. */
  readonly skillTags?: readonly string[]
  /** At most so many, from the first `agent_id` on. */
  readonly limit: number
  /** Only agents whose `agent_id` comes after this one, registered or not. */
  readonly after?: string
}

/**
 * An agent card as the directory keeps it (specification, "Agent card"). What the tools read is named here; every other
 * field is the agent's own and is passed on as it is.
 */
export interface AgentCard {
  readonly agent_id: string
  readonly name: string
  readonly skills?: readonly AgentSkill[]
  readonly [field: string]: unknown
}

export interface AgentSkill {
  readonly id: string
  readonly name: string
  readonly tags?: readonly string[]
  readonly [field: string]: unknown
}

export interface AgentRequestOptions {
  /** On whose behalf; the agent learns it as `X-Broker-Caller-ID`. */
  readonly caller: Caller
  /**
   * The agent's time to answer, in milliseconds; above 0. Left out: the gateway's DefaultTimeoutSeconds. Values over its
   * MaxTimeoutSeconds are capped (M13).
   */
  readonly timeoutMs?: number
  /** Brokers that the call had come through before this one. */
  readonly hops: number
  /** Headers of the caller's that go to the agent (A5). @default none */
  readonly headers?: Readonly<Record<string, string>>
  /** Aborting it stops the waiting, and rejects with its reason. */
  readonly signal?: AbortSignal
  /**
   * Aborted when the caller cannot get the reply any more (M5). A request that no node of the agent's has taken is dropped
   * then, and rejects with the signal's reason; one that was taken runs on.
   */
  readonly callerGone?: AbortSignal
  /**
   * Resolve as soon as the agent's node has accepted the request, without waiting for the agent (M12). The reply is then
   * `executed` with an empty body.
   * @default false
   */
  readonly acceptOnly?: boolean
}

/** How a request to an agent ended (specification, "Transport versus application errors"). */
export interface AgentReply {
  /** False when the agent never processed the request; `error` then says why. */
  readonly executed: boolean
  /** Empty when `executed`. */
  readonly error: string
  /** Why there is no response to pass on: `too_large`, `invalid_response`, or another. */
  readonly failure?: string
  /** HTTP status of the agent's response; 0 when there is none. */
  readonly status: number
  /** The agent's response, byte for byte. */
  readonly body: Uint8Array
}

/**
 * What the four agent tools need of an agent registry and gateway. Whoever implements it holds the right to the
 * broker's own channels: the tools have none.
 */
export interface AgentDirectory {
  /** In the order of `agent_id`. */
  list(filter: AgentFilter): Promise<readonly AgentCard[]>
  /** Undefined when no such agent is registered; an id of the wrong form is one that is not. */
  get(agentId: string): Promise<AgentCard | undefined>
  /**
   * Forwards one JSON-RPC request, byte for byte, as a Query to `_AGENTS_.agents/<agent_id>`. The Query waits
   * GatewayTimeoutBuffer (10 s) longer than the agent may take (A2).
   *
   * @throws BrokerError REQUEST_TIMEOUT or NO_SUBSCRIBER when no answer came in time, ENGINE_UNAVAILABLE
   */
  request(agentId: string, envelope: Uint8Array, options: AgentRequestOptions): Promise<AgentReply>
}
