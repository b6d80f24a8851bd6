import type { BrokerHandle, Caller } from '@signalbox/broker-core'

import type { AgentQueryMode } from './agent-query.ts'
import { agentChannel, encodeAgentQuery } from './agent-query.ts'
import type { AgentReply } from './agent-reply.ts'
import { decodeAgentReply } from './agent-reply.ts'

/** How much longer than the agent the broker waits, in milliseconds (specification, "Limits": GatewayTimeoutBuffer). */
export const GATEWAY_TIMEOUT_BUFFER_MS = 10_000

export interface AgentTimeouts {
  /** For requests that name no timeout of their own, in milliseconds. @default 300000 */
  readonly defaultTimeoutMs: number
  /** Larger ones are capped to it, in milliseconds. @default 3600000 */
  readonly maxTimeoutMs: number
}

export interface AgentRequestOptions {
  /** On whose behalf; the agent learns it as `X-Broker-Caller-ID`. */
  readonly caller: Caller
  /** The agent's time to answer, in milliseconds; above 0. Larger values than the maximum are capped (A2). @default the default timeout */
  readonly timeoutMs?: number
  /** Brokers that the request had come through before this one. @default 0 */
  readonly hops?: number
  /** The caller's headers that go to the agent (A5). @default none */
  readonly headers?: Readonly<Record<string, string>>
  /** Aborting it stops the waiting, and rejects with its reason. */
  readonly signal?: AbortSignal
  /**
   * Aborted when the caller cannot get the reply any more. A request that no node has taken is dropped then, and rejects
   * with the signal's reason; one that was taken runs on.
   */
  readonly callerGone?: AbortSignal
  /** Resolve as soon as the agent's node has accepted the request (M12). @default false */
  readonly acceptOnly?: boolean
  /** Stream the agent's events under this id (A10). */
  readonly streamId?: string
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({})

/** Sends requests to agents, wherever in the cluster they are served. */
export class AgentRequests {
  readonly #system: BrokerHandle
  readonly #timeouts: AgentTimeouts

  constructor(system: BrokerHandle, timeouts: AgentTimeouts) {
    this.#system = system
    this.#timeouts = timeouts
  }

  /**
   * Forwards a JSON-RPC request, byte for byte, as a Query to `_AGENTS_.agents/{agent_id}`. The Query waits
   * {@link GATEWAY_TIMEOUT_BUFFER_MS} longer than the agent may take (A2).
   * @throws BrokerError REQUEST_TIMEOUT or NO_SUBSCRIBER when no answer came in time, ENGINE_UNAVAILABLE
   */
  async request(agentId: string, body: Uint8Array, options: AgentRequestOptions): Promise<AgentReply> {
    const { caller, hops = 0, headers = NO_HEADERS, signal, callerGone, acceptOnly = false, streamId } = options
    const { defaultTimeoutMs, maxTimeoutMs } = this.#timeouts
    const timeoutMs = Math.min(options.timeoutMs ?? defaultTimeoutMs, maxTimeoutMs)
    const mode: AgentQueryMode = streamId === undefined ? (acceptOnly ? 'accept' : 'call') : 'stream'
    const query = encodeAgentQuery({
      mode,
      body,
      callerId: caller.clientId,
      timeoutMs,
      hops: hops + 1,
      headers,
      ...(streamId === undefined ? {} : { streamId }),
    })
    const reply = await this.#system.queries.send(agentChannel(agentId), query, {
      timeoutMs: Math.ceil(timeoutMs) + GATEWAY_TIMEOUT_BUFFER_MS,
      ...(signal === undefined ? {} : { signal }),
      ...(callerGone === undefined ? {} : { callerGone }),
    })
    return decodeAgentReply(reply)
  }
}
