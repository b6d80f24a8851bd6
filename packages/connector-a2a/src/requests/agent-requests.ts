import { randomUUID } from 'node:crypto'

import type { BrokerHandle } from '@signalbox/broker-core'
import { BrokerError } from '@signalbox/broker-core'
import type { AgentRequestOptions as AgentDirectoryOptions } from '@signalbox/broker-core/ports'
import type { HeldBytes } from '@signalbox/http-kit/internal'
import { hasRole } from '@signalbox/http-kit'

import type { AgentQueryMode, LoggedRequest, WireRequest } from './agent-query.ts'
import { agentChannel, encodeAgentQuery, LOG_CHANNEL, WIRE_CHANNEL } from './agent-query.ts'
import type { AgentReply } from './agent-reply.ts'
import { decodeAgentReply, refusedReply } from './agent-reply.ts'

/** The time that the broker waits longer than the agent may take, in milliseconds. */
export const GATEWAY_TIMEOUT_BUFFER_MS = 10_000

export interface AgentTimeouts {
  /** The timeout of requests without one, in milliseconds. @default 300000 */
  readonly defaultTimeoutMs: number
  /** The maximum timeout, in milliseconds; larger values are reduced to it. @default 3600000 */
  readonly maxTimeoutMs: number
}

/** Options of a request to an agent, as the gateway sends it. */
export interface AgentRequestOptions extends AgentDirectoryOptions {
  /** The id of the stream; when set, the agent's events are streamed under it. */
  readonly streamId?: string | undefined
  /**
   * The version of A2A that the request is written in; the serving node translates it to the agent's. @default the
   * agent gets the request unchanged
   */
  readonly wire?: Omit<WireRequest, 'agentId'> | undefined
  /** The run in whose log the answer is kept. Its id is that of the stream. @default it is not kept */
  readonly log?: Omit<LoggedRequest, 'agentId'> | undefined
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({})

/** Sends requests to agents on any node of the cluster. */
export class AgentRequests {
  readonly #system: BrokerHandle
  readonly #timeouts: AgentTimeouts
  /** The replies to requests of this node, for the part of it that serves agents. */
  readonly replies = new RepliesOnTheWay()

  constructor(system: BrokerHandle, timeouts: AgentTimeouts) {
    this.#system = system
    this.#timeouts = timeouts
  }

  /** The time-out of requests that set none, in ms. */
  get defaultTimeoutMs(): number {
    return this.#timeouts.defaultTimeoutMs
  }

  /** Returns the time that an agent has to answer, in ms. @param given The time-out of the request */
  timeoutMs(given: number | undefined): number {
    const { defaultTimeoutMs, maxTimeoutMs } = this.#timeouts
    return Math.min(given ?? defaultTimeoutMs, maxTimeoutMs)
  }

  /**
   * Sends a JSON-RPC request, unchanged, as a Query to `_AGENTS_.agents/{agent_id}`, or to {@link WIRE_CHANNEL} if it
   * has a `wire`. The Query waits {@link GATEWAY_TIMEOUT_BUFFER_MS} longer than the agent may take.
   * @throws BrokerError REQUEST_TIMEOUT or NO_SUBSCRIBER when no answer came in time, ENGINE_UNAVAILABLE
   */
  async request(agentId: string, body: Uint8Array, options: AgentRequestOptions): Promise<AgentReply> {
    const {
      caller,
      hops = 0,
      headers = NO_HEADERS,
      traced,
      signal,
      callerGone,
      acceptOnly = false,
      streamId,
      wire,
      log,
    } = options
    const short = options.hold?.refusesBody(Infinity)
    if (short !== undefined) return { ...refusedReply(short), unsent: true }
    const timeoutMs = this.timeoutMs(options.timeoutMs)
    const mode: AgentQueryMode = streamId === undefined ? (acceptOnly ? 'accept' : 'call') : 'stream'
    const requestId = this.replies.expect()
    const query = encodeAgentQuery({
      mode,
      body,
      callerId: caller.clientId,
      admin: hasRole(caller, 'Admin'),
      account: caller.account ?? `client:${caller.clientId}`,
      requestId,
      timeoutMs,
      hops: hops + 1,
      headers,
      traced,
      streamId,
      wire: wire && { ...wire, agentId },
      log: log && { ...log, agentId },
    })
    const channel = log === undefined ? (wire === undefined ? agentChannel(agentId) : WIRE_CHANNEL) : LOG_CHANNEL
    try {
      const reply = await this.#system.queries.send(channel, query, {
        timeoutMs: Math.ceil(timeoutMs) + GATEWAY_TIMEOUT_BUFFER_MS,
        signal,
        callerGone,
      })
      // From here on the request holds the bytes.
      this.replies.end(requestId)
      const refusal = options.hold?.charge(reply.body.byteLength)
      if (refusal !== undefined) return refusedReply(refusal)
      const decoded = decodeAgentReply(reply)
      if (decoded.failure === 'no_store') throw new BrokerError('ENGINE_UNAVAILABLE', decoded.error)
      return decoded
    } finally {
      this.replies.end(requestId)
    }
  }

  /**
   * Asks a node to continue a run that its own node has left. Does nothing for a run that is over.
   * @throws BrokerError NO_SUBSCRIBER, REQUEST_TIMEOUT, ENGINE_UNAVAILABLE
   */
  async resume(agentId: string, run: string, caller: AgentDirectoryOptions['caller']): Promise<void> {
    const query = encodeAgentQuery({
      mode: 'resume',
      body: NO_BODY,
      callerId: caller.clientId,
      account: caller.account ?? `client:${caller.clientId}`,
      timeoutMs: RESUME_TIMEOUT_MS,
      hops: 1,
      headers: NO_HEADERS,
      log: { agentId, run },
    })
    await this.#system.queries.send(LOG_CHANNEL, query, { timeoutMs: RESUME_TIMEOUT_MS })
  }
}

/** The time for a node to take over a run, in ms. */
const RESUME_TIMEOUT_MS = 10_000

const NO_BODY = new Uint8Array(0)

/**
 * The replies on their way through the broker to requests of this node. If this node serves the agent too, the bytes of
 * the reply stay counted until the request takes them over.
 */
export class RepliesOnTheWay {
  readonly #node = randomUUID()
  readonly #held = new Map<string, HeldBytes | undefined>()
  #last = 0

  /** Begins to expect a reply. Returns the id of the request. */
  expect(): string {
    const id = `${this.#node}.${++this.#last}`
    this.#held.set(id, undefined)
    return id
  }

  /** Keeps the bytes of a reply counted, if a request of this node expects it. Otherwise releases them. */
  sent(id: string | undefined, held: HeldBytes): void {
    if (id !== undefined && this.#held.has(id)) this.#held.set(id, held)
    else held.release()
  }

  /** Ends the wait for a reply, and releases its bytes. */
  end(id: string): void {
    this.#held.get(id)?.release()
    this.#held.delete(id)
  }
}
